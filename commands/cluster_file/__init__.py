"""`kctl export`, `kctl diff` and `kctl apply`: a cluster in files."""
