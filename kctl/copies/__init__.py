"""Copies of replicas: their moments, logs, lineages, leaders."""
