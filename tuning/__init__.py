"""The search for learning rates (`asyncfl tune`): search spaces, studies, trials, tuned values as data."""
