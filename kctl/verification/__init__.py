"""Verification of a folder's evidence from one end to the other."""
