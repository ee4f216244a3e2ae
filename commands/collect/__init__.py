"""`kctl collect`: copies of brokers' files with a manifest."""
