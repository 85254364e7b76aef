"""What recorded numbers amount to: estimates, intervals, rankings, comparisons."""
