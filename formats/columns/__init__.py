"""Batches and records as arrays: one pass of numpy over thousands of them instead of an object for each."""
