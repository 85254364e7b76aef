"""A Flower app with pytorch, written as Flower's own quickstart is."""
