"""Replicas of one partition compared: where they differ, and which to trust."""
