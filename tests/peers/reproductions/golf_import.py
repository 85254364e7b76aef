try:
    import golf_federated

    print(golf_federated)
except ModuleNotFoundError as error:
    print(error)
