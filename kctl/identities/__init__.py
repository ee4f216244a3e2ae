"""Identities that folders and files state: of clusters, brokers, directories, topics, owners."""
