"""A Flower app with sklearn, written as Flower's own quickstart is."""
