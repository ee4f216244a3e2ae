"""TOML of unknown origin, parsed only if its values take bounded memory.

A part of a dotted key (`a.`) becomes three dictionaries and two sets, and a key keeps every beginning of itself, so
that forty kilobytes may take more than a gigabyte. What a document takes is counted before it is parsed, from above.
"""

from __future__ import annotations

import re
import tomllib
from typing import Any

MOST = 192 << 20
"""Bytes that a document may take in memory, its characters not counted."""
DEEPEST = 32
"""Parts of a dotted key."""
WEIGHTS = {".": 1200, "=": 400, "\n": 1200, "{": 250, "[": 80, ",": 80}
"""Bytes of what tomllib makes, by the character that there is at least one of for each; a table ends with its line."""
WORDLESS = re.compile(
    r'"""(?:[^"\\]|\\.|"(?!""))*+(?:""")?|\'\'\'(?:[^\']|\'(?!\'\'))*+(?:\'\'\')?'
    r'|"(?:[^"\\\n]|\\.)*+"?|\'[^\'\n]*+\'?|#[^\n]*+',
    re.DOTALL,
)
"""Strings and comments, also those that do not end."""


class TooComplex(ValueError):
    """What a document holds is too much, too deep or too long to be parsed."""


def loads(text: str) -> dict[str, Any]:
    """The values of a document; raises TOMLDecodeError or `TooComplex`, both a ValueError."""
    check(text)
    try:
        return tomllib.loads(text)
    except RecursionError:
        raise TooComplex("it is nested too deep") from None
    except tomllib.TOMLDecodeError:
        raise
    except ValueError:  # of `int`
        raise TooComplex("a number has too many digits") from None


def check(text: str) -> None:
    """Raise `TooComplex` where a document would take more memory than it may."""
    bare = WORDLESS.sub("''", text)
    if any(key.count(".") >= DEEPEST for key in re.split(r"[\n=,{}\[\]]", bare)):
        raise TooComplex(f"a key has more than {DEEPEST} parts")
    if sum(weight * bare.count(character) for character, weight in WEIGHTS.items()) > MOST:
        raise TooComplex(f"its values would take more than {MOST >> 20} MiB of memory")
