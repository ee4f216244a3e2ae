"""Click commands: they parse arguments, call the core and render what comes back."""
