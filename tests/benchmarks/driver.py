"""What a command in another process says while it works."""

import re
import subprocess
import time

from patience import PATIENCE


def finished(driver: subprocess.Popen[str], number: int) -> str:
    """Read its lines until so many runs or trials are done; all that it said until then."""
    assert driver.stdout is not None
    said = ""
    end = time.monotonic() + PATIENCE
    for line in driver.stdout:
        said += line
        assert time.monotonic() < end, said
        done = re.match(r"\[ *(\d+)/", line)
        if done and int(done[1]) >= number:
            return said
    raise AssertionError(said)
