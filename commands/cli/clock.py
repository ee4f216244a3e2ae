"""Times as people read them on a terminal: in UTC, with `--local-time` in the zone of this machine. Rows keep UTC."""

import os
from datetime import datetime

from kctl.times import iso


def shown(when: int | str) -> str:
    """ISO 8601 of milliseconds since the epoch or of text; text that is no time in UTC stays as it is."""
    text = iso(when) if isinstance(when, int) else when
    if not os.environ.get("KCTL_LOCAL_TIME") or not text.endswith("Z"):
        return text
    try:
        return datetime.fromisoformat(text).astimezone().isoformat(timespec="milliseconds")
    except (ValueError, OverflowError, OSError):
        return text


def day(when: int | str) -> str:
    """The day, and the zone that it is told in."""
    text = shown(when)
    return f"{text[:10]} {text[23:].replace('Z', 'UTC')}"


def clock(when: int | str) -> str:
    """The time of the day, to the millisecond."""
    return shown(when)[11:23]
