"""`kctl segment`."""
