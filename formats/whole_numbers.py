"""Whole numbers in text of other programs and people."""

LONGEST = 18  # digits: int() is slow for many, refuses more than 4,300, and 64 bits hold what has so few


def whole_number(text: str) -> int | None:
    """The number that ASCII digits write; None for more than 18 of them and for any other text."""
    return int(text) if len(text) <= LONGEST and text.isascii() and text.isdigit() else None
