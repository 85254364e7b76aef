"""The parts of the page, one file each: content, figures and caption."""
