"""The README's Python example runs as it stands."""

import re
from pathlib import Path

import pytest

README = Path(__file__).parents[1] / "README.md"


def test_the_ten_lines_of_python_run(capsys: pytest.CaptureFixture[str]) -> None:
    """Two lines, one accuracy each, well above chance."""
    [code] = re.findall(r"```python\n(.*?)```", README.read_text(), re.DOTALL)
    exec(code, {})
    said = capsys.readouterr()
    accuracies = [float(found) for found in re.findall(r"accuracy (\d\.\d+)", said.out)]
    assert len(accuracies) == 2
    assert min(accuracies) > 0.7
    assert "Traceback" not in said.err
