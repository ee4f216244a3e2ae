"""Reassignments: plans, moves, throttles, their end."""
