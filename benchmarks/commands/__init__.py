"""One file for each subcommand of `asyncfl`; none imports anything heavy before it runs."""
