"""Sections of the report page, a module for each topic: text, figures and tables.

`reports/page.py` calls the functions that return a `Section`; the templates are in reports/templates/. Most
numbers come from `reports/records/`.

Fixed: anchors of sections, which `page.py` and links name, and names of figures, by which `asyncfl.figures`
returns them and `--files` names files. Free: order, look and wording.
"""
