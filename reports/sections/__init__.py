"""Parts of the page, a file for each: content, figures and caption."""
