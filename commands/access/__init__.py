"""`kctl acl`, `kctl user`, `kctl quota` and `kctl token`."""
