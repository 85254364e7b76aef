"""Clients as they are: logs of their jobs, and which strategies lead for such clients."""
