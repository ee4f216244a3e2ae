"""Replicas of one partition held against each other: lineages, comparison, loss, and the story of an offset."""
