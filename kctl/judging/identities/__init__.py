"""Identities that several places of one evidence state: each with its places, and the pairs that differ."""
