"""What makes the documentation: the site, its generated pages and tables, its pictures. `make docs` runs it."""
