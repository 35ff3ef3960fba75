"""Reports: one result, shown in the terminal, as JSON and as a page."""
