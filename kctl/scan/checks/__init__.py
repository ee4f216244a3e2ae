"""The checks that a scan runs on each log, and their table."""
