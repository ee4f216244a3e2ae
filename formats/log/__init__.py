"""The bytes of a log: batches of magic 2, messages of magic 0 and 1, control records, damage between them."""
