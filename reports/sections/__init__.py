"""Sections of the report page, a module for each topic; `reports/page.py` calls their functions.

Fixed: anchors of sections (`page.py` and links name them), and names of figures (`asyncfl.figures` returns
them, and `--files` names files by them). Free: order, look and wording.
"""
