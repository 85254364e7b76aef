"""Diagnostics: why a run behaved as it did. They change no result, and cost nothing unless requested."""
