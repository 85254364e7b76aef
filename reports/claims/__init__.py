"""Verdicts on claims and main results from stored numbers, with pages and tables; `asyncfl claims` calls it.

Start with `verdicts` for the rules, `readings` for the data, `markdown` for the docs.
Fixed: verdicts, and the pages in docs/ that are made from them, byte for byte (`tox run -e reproduce`).
"""
