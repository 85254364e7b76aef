"""How long bytes take: links of clients, and links that they share."""
