"""Copies of replicas as the evidence holds them: logs, epochs, and what znodes and broker logs say of them."""
