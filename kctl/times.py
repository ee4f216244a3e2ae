"""Points in time as people write them."""

import re
import time
from datetime import UTC, datetime
from functools import lru_cache

from formats.words import utc_text as utc_text
from kctl.errors import BadValue

RELATIVE = re.compile(r"([+-]?)(\d+(?:\.\d+)?)(ms|s|m|h|d|w)\Z")
LONGEST = 64  # characters of a time
MILLISECONDS = {"ms": 1, "s": 1000, "m": 60_000, "h": 3_600_000, "d": 86_400_000, "w": 604_800_000}


def parse_time(text: str, option: str = "", now: int | None = None) -> int:
    """Milliseconds since the epoch for ISO 8601 (UTC where it has no offset), `-2h` before now, or epoch ms.

    `option` is named in the error; `now` is in milliseconds, the clock's where it is not given. `BadValue` for
    anything else, and for a time that 64 bits do not hold.
    """
    milliseconds = _milliseconds(text.strip(), now) if len(text) <= LONGEST else None
    if milliseconds is None or not -(2**63) <= milliseconds < 2**63:
        raise BadValue(
            f"{option} {text[:LONGEST]!r} is not a time".lstrip(),
            "write 2026-11-21T13:00:00Z, -2h, or milliseconds since the epoch",
        )
    return milliseconds


def _milliseconds(text: str, now: int | None) -> int | None:
    if re.fullmatch(r"-?\d+", text) and not re.fullmatch(r"\d{8}", text):
        return int(text)
    relative = RELATIVE.match("0s" if text == "now" else text)
    if relative:
        amount = round(float(relative[2]) * MILLISECONDS[relative[3]])
        now = time.time_ns() // 1_000_000 if now is None else now
        return now + amount if relative[1] == "+" else now - amount
    try:
        when = datetime.fromisoformat(text.replace(",", "."))
    except ValueError:
        return None
    return round((when if when.tzinfo else when.replace(tzinfo=UTC)).timestamp() * 1000)


def iso(milliseconds: int | None) -> str:
    """ISO 8601 in UTC with milliseconds; empty for None and -1, which stand for an unknown time."""
    if milliseconds is None or milliseconds == -1:
        return ""
    seconds, rest = divmod(milliseconds, 1000)
    try:
        return f"{_second(seconds)}.{rest:03d}Z"
    except (OverflowError, ValueError, OSError):
        return f"{milliseconds} ms"


def parse_iso(text: str) -> int:
    """The milliseconds that `iso` made the text of; -1 for an unknown time."""
    return int(text[:-3]) if text.endswith(" ms") else parse_time(text or "-1")


@lru_cache(4096)
def _second(seconds: int) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat()[:19]
