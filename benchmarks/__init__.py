"""From a suite to records in MLflow: suites, runs, `mlflow_store`, claims, leaderboard, and the commands."""
