try:
    import flsim.trainers.async_trainer

    print(flsim.trainers.async_trainer)
except ValueError as error:
    print(error)
