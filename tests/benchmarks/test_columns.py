"""Tables in a narrow terminal: nothing is lost, lines fit, and no word is broken that would fit a line."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.columns import laid_out

words = st.text("abcdefghij-−.é", min_size=1, max_size=14)
cells = st.lists(words, max_size=8).map(" ".join)


@given(st.integers(1, 5).flatmap(lambda n: st.lists(st.tuples(*[cells] * n), min_size=2, max_size=5)))
def test_words_are_whole_and_lines_fit(table: list[tuple[str, ...]]) -> None:
    header, *rows = table
    head, lines = laid_out(header, rows, 80)
    assert all(len(line) <= 80 for line in [*head, *(first + rest for first, rest in lines)])
    printed = [word for first, rest in lines for word in (first + rest).split()]
    assert sorted(printed) == sorted(word for row in rows for cell in row for word in cell.split())


ROWS = [("FedBuff (concurrency 10)", "exponential", "0.5"), ("ACE", "F80", "12")]


def test_a_table_that_fits_is_one_line_a_row() -> None:
    head, lines = laid_out(("strategy", "law", "loss"), ROWS, 80)
    assert head[0].split() == ["strategy", "law", "loss"] and set(head[1]) == {"─"}
    assert [first.strip() for first, _ in lines] == ["FedBuff (concurrency 10)", "ACE"]
    assert [rest.split() for _, rest in lines] == [["exponential", "0.5"], ["F80", "12"]]


@pytest.mark.parametrize("width", range(31, 44))
def test_the_widest_column_gives_way(width: int) -> None:
    head, lines = laid_out(("strategy", "law", "loss"), ROWS, width)
    assert max(len(line) for line in head) <= width
    assert next(rest.split() for _, rest in lines) == ["exponential", "0.5"]
    assert " ".join(first.strip() for first, _ in lines[:-1]) == "FedBuff (concurrency 10)"


@pytest.mark.parametrize("width", [19, 25, 30])
def test_where_words_do_not_fit_side_by_side_names_have_their_own_lines(width: int) -> None:
    head, lines = laid_out(("strategy", "law", "loss"), ROWS, width)
    assert head[0] == "strategy" and head[1].split() == ["law", "loss"]
    assert next(rest.split() for _, rest in lines if rest) == ["exponential", "0.5"]
    assert all(len(first + rest) <= width for first, rest in lines)
