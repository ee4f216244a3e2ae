"""Tiered storage audited: metadata against objects against local logs."""
