"""Data sets as tensors: where they are found, how they are read, which client holds what."""
