"""Faster replacements for parts of kafka-python: importing it, receiving, decoding large answers."""
