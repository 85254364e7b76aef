"""A file for each published algorithm; a strategy in the folder is found by the class's `name`."""
