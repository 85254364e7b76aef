"""Claims of the papers: entries, needed runs, stored numbers, and the register of decisions."""
