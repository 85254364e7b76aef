"""Diagnostics: reasons for a run's behaviour, without effect on results, or on cost unless requested.

Fixed: names of columns, which are recorded. No key of a run depends on diagnostics.
"""
