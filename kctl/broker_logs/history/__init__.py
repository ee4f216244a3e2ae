"""Broker logs as a history: who led, who was controller, which broker was up."""
