"""One file for each published algorithm; a strategy put here is found by its class's `name`."""
