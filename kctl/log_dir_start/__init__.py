"""What a broker of a given version does to its log directories on its start, forecast from the files alone."""
