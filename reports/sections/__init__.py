"""Sections of the report page, a module for each topic: text, figures and tables.

`reports/page.py` calls the functions that return a `Section`; the templates are in reports/templates/.
Free: order, look and wording; no code reads a section. The numbers come from `reports/records/`.
"""
