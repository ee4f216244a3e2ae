"""A replica's log on disk: its files, what a broker would do with them at start-up, and writing them anew."""
