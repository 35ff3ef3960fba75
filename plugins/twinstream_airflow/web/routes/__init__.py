"""One file for each family of routes: what JSON says, and the page that shows it."""
