"""Replicas of one partition compared with each other: lineages, differences, losses, and the history of an offset."""
