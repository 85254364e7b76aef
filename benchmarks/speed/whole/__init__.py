"""Whole runs as users get them: where their time goes, the same work as a plain script, how cost grows."""
