try:
    import golf_federated  # noqa: F401
except ModuleNotFoundError as error:
    print(error)
