"""Local work, what a client does with the model it receives: the interface, and every kind."""
