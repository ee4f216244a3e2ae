"""Commands about kctl itself: findings, schemas, completion, man pages, doctor."""
