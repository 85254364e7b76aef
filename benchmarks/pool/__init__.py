"""Where jobs are computed: an interface, and the engines behind it: worker processes, a Ray cluster.

The pool knows nothing of suites, MLflow or Optuna: jobs are defined by the code that submits them.
"""
