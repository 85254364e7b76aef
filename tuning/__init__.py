"""The search for learning rates (`asyncfl tune`): search spaces, studies, trials, tuned values as data.

Fixed: which trials a study draws, and their values; identities of studies. Storages and tuned values contain
them. Free: messages, and how processes share the work.
"""
