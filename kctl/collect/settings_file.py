"""A broker's file of settings without its secrets; comments, order and everything else stay as they are.

Source: `java.util.Properties.load`: a line that ends with an odd number of backslashes goes on in the next.
"""

from __future__ import annotations

import re

from formats.secrets import REDACTED, is_secret_key, redact_text

KEY = re.compile(r"(\s*)((?:\\.|[^\\\s=:])+)(\s*[=:]?\s*)", re.DOTALL)


def without_secrets(text: str) -> str:
    """The text of the file with `(redacted)` in the place of passwords, and of what names them in values."""
    out, lines = [], text.splitlines(keepends=True)
    while lines:
        logical = lines.pop(0)
        is_comment = logical.lstrip()[:1] in ("#", "!")
        while not is_comment and lines and _is_continued(logical):
            logical += lines.pop(0)
        out.append(_comment(logical) if is_comment else _setting(logical))
    return "".join(out)


def _is_continued(line: str) -> bool:
    bare = line.rstrip("\r\n")
    return (len(bare) - len(bare.rstrip("\\"))) % 2 == 1


def _comment(line: str) -> str:
    """A comment; one that sets something may be a setting that was put out of force."""
    mark = re.match(r"\s*[#!]+\s*", line)
    assert mark
    return mark[0] + _setting(line[mark.end() :])


def _setting(line: str) -> str:
    match = KEY.match(line)
    if match is None:
        return redact_text(line)
    ending = line[len(line.rstrip("\r\n")) :]
    value = line[match.end() :]
    key = re.sub(r"\\(.)", r"\1", match[2])
    if is_secret_key(key) and value.strip() and re.search(r"[=:\s]", match[3]):
        return f"{match[0]}{REDACTED}{ending}"
    return match[0] + redact_text(value)
