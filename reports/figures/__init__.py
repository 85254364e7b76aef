"""Figures as SVG in the page's colours, and as files for a paper."""
