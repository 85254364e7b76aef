"""The command line: `asyncfl`, or `python -m asyncfl`."""

from asyncfl.cli import main

if __name__ == "__main__":
    main()
