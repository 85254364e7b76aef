"""The language of suites: from a YAML file to validated experiments, and what is said about mistakes."""
