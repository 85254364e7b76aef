"""The language of suites: from a YAML file to validated runs (`suite.load`), and messages about mistakes.

Fixed: names, defaults and meaning of keys, and so the experiments of every suite (keys of runs). Free:
messages.
"""
