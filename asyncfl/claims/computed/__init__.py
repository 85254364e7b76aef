"""Functions that compute claims without training, named by entries; one module per paper.

Each takes the entry's arguments by keyword and returns a number, a boolean, a fraction, or a list or mapping
of them.
"""
