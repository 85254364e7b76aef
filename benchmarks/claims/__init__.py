"""Claims of the papers: entries, their runs, stored numbers, and the register of decisions."""
