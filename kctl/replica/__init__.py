"""Replicas of one partition compared with each other: lineages, comparison, loss, and the story of an offset."""
