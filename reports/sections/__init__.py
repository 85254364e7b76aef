"""Sections of the report page, a module for each topic: text, figures and tables.

`reports/page.py` calls the functions that return a `Section`, and renders the templates in
reports/templates/.
"""
