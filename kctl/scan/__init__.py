"""Segments as arrays: blocks of bytes in, chunks of columns, damage and findings out."""
