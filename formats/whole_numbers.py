"""Whole numbers in text of other programs and people."""

LONGEST = 18  # digits: int() is slow for many, refuses more than 4,300, and 64 bits hold what has so few


def whole_number(text: str) -> int | None:
    """The number that ASCII digits write; None for more than 18 of them and for any other text."""
    return int(text) if len(text) <= LONGEST and text.isascii() and text.isdigit() else None


def counted(number: object, noun: str, plural: str = "") -> str:
    """`1 partition`, `1,200 partitions`; `plural` of a noun that does not end with an s then."""
    return f"{number:,} {noun if number == 1 else plural or noun + 's'}"
