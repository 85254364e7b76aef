"""What may be read of a user's file: a regular file, up to a bound on what comes out of it."""

import os
from pathlib import Path

import pytest

from fl_core import file_reading


def test_a_file_is_read_up_to_its_bound_and_not_beyond(tmp_path: Path) -> None:
    path = tmp_path / "f"
    path.write_bytes(b"x" * 5_000_000)
    assert file_reading.content(path, 5_000_000) == path.read_bytes()
    with pytest.raises(OSError, match="is larger than 4 MB"):
        file_reading.content(path, 4_999_999)


def test_what_counts_is_what_is_read() -> None:
    """Files of the kernel say that they are empty."""
    path = Path("/proc/self/status")
    assert path.stat().st_size == 0
    assert file_reading.text(path).startswith("Name:")
    with pytest.raises(OSError, match="is larger than 0 MB"):
        file_reading.content(path, 10)


@pytest.mark.timeout(60)
def test_pipes_devices_and_folders_are_not_read(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "pipe", Path("/dev/null"), Path("/dev/full")):
        with pytest.raises(OSError, match="is not a regular file"):
            file_reading.content(path)
    with pytest.raises(IsADirectoryError):
        file_reading.content(tmp_path)
    with pytest.raises(FileNotFoundError):
        file_reading.content(tmp_path / "none")


def test_text_has_its_lines_ended_alike(tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes("α\r\nβ\rγ".encode())
    assert file_reading.text(tmp_path / "f") == "α\nβ\nγ" == (tmp_path / "f").read_text(encoding="utf-8")
    (tmp_path / "f").write_bytes(b"\xff\xfe")
    with pytest.raises(UnicodeDecodeError):
        file_reading.text(tmp_path / "f")
