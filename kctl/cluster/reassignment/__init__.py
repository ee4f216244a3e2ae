"""Reassignments: planning the fewest moves, carrying them out, throttles, verification, cancelling."""
