"""Records of results, in the outbox on disk and in MLflow; no other package writes to either.

Fixed: names and files of records, which users' stores contain; no code reads another form.
"""
