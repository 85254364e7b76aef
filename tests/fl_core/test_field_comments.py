"""Descriptions of fields are the comments beside them, or directly above; a field's own description wins."""

from typing import Literal

from pydantic import Field

from fl_core import field_comments
from fl_core.parts import Count, Frozen


class Base(Frozen):
    """A base."""

    width: Count = 1  # in metres
    height: Count = 1


class Described(Base):
    """One class with every way to describe a field."""

    first: int = 0  # beside it
    # Above it, in
    # two lines.
    second: int = 0
    third: str = "# no comment"
    fourth: tuple[int, ...] = (
        1,  # inside
        2,
    )  # behind the last line  # whole
    umlaut: Literal["ä # b"] = "ä # b"  # after letters of two bytes
    said: int = Field(0, description="by itself")  # not this
    width: Count = 2


def test_every_way_to_describe_a_field() -> None:
    assert Described.descriptions() == {
        "width": "in metres",  # inherited, since the new default says nothing else
        "height": "",
        "first": "beside it",
        "second": "Above it, in two lines.",
        "third": "",
        "fourth": "behind the last line  # whole",
        "umlaut": "after letters of two bytes",
        "said": "by itself",
    }


def test_the_schema_has_them() -> None:
    schema = Described.model_json_schema()["properties"]
    assert {name: of.get("description", "") for name, of in schema.items()} == Described.descriptions()


def test_a_class_without_a_source_has_none() -> None:
    made: dict[str, type[Frozen]] = {}
    exec("class Made(Frozen):\n    size: int = 0  # unseen\n", {"Frozen": Frozen}, made)
    assert field_comments.of_fields(made["Made"]) == {}
    assert made["Made"].descriptions() == {"size": ""}  # type: ignore[attr-defined]
