"""Suites, the pool, tracking and the command line: everything between the science and its reports."""
