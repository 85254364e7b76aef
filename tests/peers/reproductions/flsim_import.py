try:
    import flsim.trainers.async_trainer  # noqa: F401
except ValueError as error:
    print(error)
