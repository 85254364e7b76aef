"""Virtual time: durations of jobs, presence of clients, and the order of events."""
