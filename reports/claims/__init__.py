"""Claims: their numbers, their verdicts, and how both are shown."""
