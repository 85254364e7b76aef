"""Runs of a suite: session, jobs, recording of results, time estimates, display of progress.

Fixed: what is recorded (`Recording`), and that no finished run is lost. Free: when and where runs are
computed.
"""
