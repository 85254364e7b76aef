"""The page's part on tuning studies."""
