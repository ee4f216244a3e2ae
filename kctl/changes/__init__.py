"""Changes to a cluster: intent, plan, journal, apply, resume, undo."""
