"""A run as it is evaluated, saved and taken up again, alone or beside others."""
