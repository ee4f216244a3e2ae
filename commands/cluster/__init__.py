"""`kctl cluster`, `kctl quorum`, `kctl feature`."""
