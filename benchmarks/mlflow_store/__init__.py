"""Records of results, in the outbox on disk and in MLflow; no other package writes to either."""
