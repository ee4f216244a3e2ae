"""Audit of tiered storage: metadata, objects and local logs compared."""
