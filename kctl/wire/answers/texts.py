"""Texts of flexible versions.

Source: KIP-482 (compact texts)
"""

from formats.binary.varint import read_unsigned

Data = bytes | memoryview


def text(data: Data, at: int) -> tuple[str | None, int]:
    """A compact text, None for null, and where it ends."""
    size, at = read_unsigned(data, at)
    if size == 0:
        return None, at
    end = at + size - 1
    if end > len(data):
        raise ValueError("a string runs past the end")
    return str(data[at:end], "utf-8"), end
