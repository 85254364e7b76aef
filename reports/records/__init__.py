"""What MLflow holds of a suite, as plain data."""
