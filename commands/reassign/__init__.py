"""`kctl reassign`."""
