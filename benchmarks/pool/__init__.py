"""Where jobs are computed: an interface, and worker processes behind it; each engine is a file here.

The pool knows nothing of suites, MLflow or Optuna: jobs are defined by the code that submits them.
"""
