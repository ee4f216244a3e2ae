"""`kctl replica`."""
