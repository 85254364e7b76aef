"""Diagnostics: reasons for a run's behaviour, without effect on results, or on cost unless requested."""
