"""What papers state, as data: scenario, comparison, margin; how a claim becomes runs is in `plan`."""
