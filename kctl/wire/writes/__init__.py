"""Changes over the Admin protocol: planned, sent, checked."""
