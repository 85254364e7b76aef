"""Verdicts for readers: in the terminal, as Markdown and as HTML."""
