"""What a suite may say: every part with its fields and its paper, and the JSON schema."""
