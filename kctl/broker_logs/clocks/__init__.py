"""Time in broker logs: zones, and how far clocks are apart."""
