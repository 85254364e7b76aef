"""What claims say that can be computed without training: functions named by entries, one module a paper.

Each takes the entry's arguments by keyword and returns a number, a truth, a fraction, or a list or mapping of
them.
"""
