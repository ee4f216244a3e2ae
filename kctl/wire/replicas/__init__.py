"""Logs of running brokers: fetched, copied, compared."""
