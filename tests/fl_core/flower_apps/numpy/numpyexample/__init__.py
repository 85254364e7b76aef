"""A Flower app with numpy, written as Flower's own quickstart is."""
