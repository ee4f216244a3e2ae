"""TLS: files as a context, and why a server or a client is refused."""
