"""What is wrong: one file a subject. A check is given what was read and yields findings; it opens nothing itself."""
