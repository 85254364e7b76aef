"""Reports of recorded runs, read from MLflow alone: tables for the terminal and a self-contained page."""
