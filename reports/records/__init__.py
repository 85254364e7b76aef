"""Records of a suite in MLflow, as plain data, for all reports.

`suite_reader.load` reads a `RecordedSuite`; `seed_summaries` summarises the runs of a strategy over seeds.
Fixed: columns of the tables that `asyncfl.results`, `curves` and `clients` return; the summaries over seeds.
"""
