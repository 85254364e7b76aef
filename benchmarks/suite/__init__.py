"""The language of suites: from a YAML file to validated runs (`suite.load`), and messages about mistakes."""
