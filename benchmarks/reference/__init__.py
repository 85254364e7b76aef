"""What a suite may contain: every part with its fields and its paper."""
