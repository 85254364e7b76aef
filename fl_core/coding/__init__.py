"""What is sent of a vector, and what is received: fewer bits a number, fewer numbers, error feedback."""
