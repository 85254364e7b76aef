"""Claims of the papers: entries, the runs that they need, stored numbers, and the register of decisions."""
