"""Networks in training: tasks, worlds, pooled baseline. Loaded only when a world is built."""
