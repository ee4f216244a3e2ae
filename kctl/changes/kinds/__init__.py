"""Kinds of changes, by subject: what each asks, what it concerns, when it is done, what takes it back."""
