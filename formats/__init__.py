"""Bytes and text to values and back; pure: no files, sockets, clock or logging."""
