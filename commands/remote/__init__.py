"""`kctl remote`."""
