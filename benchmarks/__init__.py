"""From a suite to records in MLflow: suites, runs, `mlflow_store`, claims, leaderboard, and the commands.

Fixed: the forms of everything that users or this repository keep: suites, stores, tables. Each folder says
more.
"""
