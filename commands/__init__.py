"""Click commands: they parse arguments, call the core and render what comes back."""

import gc

# Rows and their parts are many, small and in no reference cycle: frequent collections cost time for nothing, and
# while click is imported too.
gc.set_threshold(100_000, 50, 100)
