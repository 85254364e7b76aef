"""Statistics of recorded numbers: estimates, intervals, rankings, comparisons."""
