"""Text logs as files: opened, unpacked, cut into blocks of lines, sorted by what writes such lines."""
