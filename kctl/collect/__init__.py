"""Copies of brokers' files, made while the brokers run, with a manifest of what was read where and when."""
