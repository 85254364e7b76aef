"""What a client does with the model that it received: the interface, and every kind of local work."""
