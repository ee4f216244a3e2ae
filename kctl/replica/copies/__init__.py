"""Copies of replicas in the evidence: logs, epochs, and what znodes and broker logs say about them."""
