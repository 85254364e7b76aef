"""From the numbers of claims to verdicts, and from these to how papers stand."""
