"""JSON of unknown origin, parsed only if its values take bounded memory.

Three bytes (`[],`) become 64 in memory, seven (`{"":0},`) two hundred. What a document takes is counted before it is
parsed, from above: by the characters that begin or separate its values.
"""

from __future__ import annotations

import json
import re
from typing import Any

MOST = 192 << 20
"""Bytes that the values of a document may take in memory, their characters not counted."""
WEIGHTS = {"{": 200, "[": 72, ",": 72, ":": 40, '"': 28}
"""Bytes of CPython's values, by the character that there is at least one of for each: `"` twice."""
LEAST = MOST // max(WEIGHTS.values())
"""Characters below which no document takes more."""
REST = re.compile(r'[^"\\]*+(?:\\.[^"\\]*+)*+"?', re.DOTALL)
"""Of a string, behind the quote that begins it."""


class TooManyValues(ValueError):
    """The values of a document would take more memory than they may."""


def loads(text: str | bytes, **hooks: Any) -> Any:
    """The value of a document; ValueError where it is none, `TooManyValues` (one of them) where it has too many values.

    RecursionError where it is nested too deep; hooks are those of `json.loads`.
    """
    if isinstance(text, bytes):
        text = text.decode(json.detect_encoding(text), "surrogatepass")
    check(text)
    return json.loads(text, **hooks)


def check(text: str) -> None:
    """Raise `TooManyValues` where the values of a document are too many."""
    if len(text) > LEAST and _weight(text, 0, len(text)) > MOST and _weight_of_values(text) > MOST:
        raise TooManyValues(f"its values would take more than {MOST >> 20} MiB of memory")


def _weight(text: str, start: int, end: int) -> int:
    return sum(weight * text.count(character, start, end) for character, weight in WEIGHTS.items())


def _weight_of_values(text: str) -> int:
    """The same without what stands within strings; it ends where `MOST` is reached."""
    weight = place = 0
    while weight <= MOST and (quote := text.find('"', place)) >= 0:
        weight += _weight(text, place, quote) + 2 * WEIGHTS['"']
        string_end = REST.match(text, quote + 1)
        assert string_end  # it matches the empty string too
        place = string_end.end()
    return weight + _weight(text, place, len(text))
