from oiafed.methods.trainers.default import AsyncTrainer

try:
    AsyncTrainer(learners=[], aggregator=None)
except TypeError as error:
    print(error)
print(hasattr(AsyncTrainer, "_weighted_average"))
