"""The language of suites: from a YAML file to validated experiments, and messages about mistakes."""
