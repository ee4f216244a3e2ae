"""Counts, sizes and times in sentences."""

SIZES = ("B", "KiB", "MiB", "GiB", "TiB", "PiB")


def counted(number: object, noun: str, plural: str = "") -> str:
    """`1 partition`, `1,200 partitions`; `plural` of a noun that does not end with an s then."""
    return f"{number:,} {noun if number == 1 else plural or noun + 's'}"


def in_unit(size: float) -> tuple[float, str]:
    """A number of bytes in the largest unit that leaves at least one."""
    unit = 0
    while size >= 1024 and unit < len(SIZES) - 1:
        size, unit = size / 1024, unit + 1
    return size, SIZES[unit]


def utc_text(milliseconds: int) -> str:
    """A time within a sentence, `2026-11-21 13:00:00 UTC`; of one beyond the calendar, the milliseconds."""
    from datetime import UTC, datetime  # every command loads this module

    try:
        return f"{datetime.fromtimestamp(milliseconds / 1000, UTC):%Y-%m-%d %H:%M:%S} UTC"
    except (OverflowError, ValueError, OSError):
        return f"{milliseconds} ms"
