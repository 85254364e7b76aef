"""Claims of the papers: entries, plans of runs, stored numbers, and the register of decisions."""
