"""A file for each published algorithm; a strategy in the folder is found by the class's `name`.

Fixed: `name`, names and defaults of fields (keys of runs, suites, tuned values), `title` (the label in stored
tables), and every step (golden trajectories). A rule with other results needs a higher `version`.
"""
