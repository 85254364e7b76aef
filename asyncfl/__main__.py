"""The command line: `asyncfl`, or `python -m asyncfl`.

Fixed: `main`, the entry point in pyproject.toml.
"""

from asyncfl.cli import main

if __name__ == "__main__":
    main()
