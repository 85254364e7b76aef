"""`asyncfl claims` and its subcommands."""
