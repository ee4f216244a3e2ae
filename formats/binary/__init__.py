"""What every format stands on: fixed-width layouts, varints, checksums."""
