"""Laws of a scenario's timing: lengths of jobs, presence of clients, transfers, power; the clock of ticks.

`scenario.Timing` chooses the laws; the loop (`fl_core/loop`) reads times from them.
Fixed: names, fields and defaults (keys of runs), and every length, absence and rate, bit for bit.
"""
