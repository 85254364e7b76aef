"""Records of a suite in MLflow, as plain data."""
