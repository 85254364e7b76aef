"""Claims of the papers: entries, plans of runs, stored numbers, and the register of decisions.

Fixed: entries, stored numbers and decisions, from which docs/claims* are made byte for byte.
"""
