"""Points in time as people write them."""

import re
import time
from datetime import UTC, datetime

from kctl.errors import BadValue

RELATIVE = re.compile(r"([+-]?)(\d+(?:\.\d+)?)(ms|s|m|h|d|w)\Z")
MILLISECONDS = {"ms": 1, "s": 1000, "m": 60_000, "h": 3_600_000, "d": 86_400_000, "w": 604_800_000}


def parse_time(text: str, now: int | None = None) -> int:
    """Milliseconds since the epoch for ISO 8601 (UTC where it has no offset), `-2h` before now, or epoch ms.

    `now` is in milliseconds; the clock's where it is not given. `BadValue` for anything else.
    """
    text = text.strip()
    if re.fullmatch(r"-?\d+", text) and not re.fullmatch(r"\d{8}", text):
        return int(text)
    relative = RELATIVE.match(text)
    if relative:
        amount = round(float(relative[2]) * MILLISECONDS[relative[3]])
        return (time.time_ns() // 1_000_000 if now is None else now) + (
            amount if relative[1] == "+" else -amount
        )
    if text == "now":
        return time.time_ns() // 1_000_000 if now is None else now
    try:
        when = datetime.fromisoformat(text.replace(",", "."))
    except ValueError:
        raise BadValue(
            f"{text!r} is no time", "write 2026-11-21T13:00:00Z, -2h, or milliseconds since the epoch"
        ) from None
    if when.tzinfo is None:
        when = when.replace(tzinfo=UTC)
    return round(when.timestamp() * 1000)


def iso(milliseconds: int | None) -> str:
    """ISO 8601 in UTC with milliseconds; nothing for a time that is not known."""
    if milliseconds is None or milliseconds < 0:
        return ""
    try:
        moment = datetime.fromtimestamp(milliseconds / 1000, UTC)
    except (OverflowError, ValueError, OSError):
        return f"{milliseconds} ms"
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")
