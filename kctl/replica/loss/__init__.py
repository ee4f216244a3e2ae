"""Losses of a partition: which records, since when, why, the evidence, and where they still are."""
