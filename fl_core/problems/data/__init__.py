"""Data sets as tensors: locations, formats, and the data of each client."""
