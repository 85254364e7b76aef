"""What the papers state, and what became of it: entries, runs, numbers, verdicts, pages, and the command."""
