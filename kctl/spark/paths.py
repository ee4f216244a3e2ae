"""Patterns in paths and URLs, as Spark's own sources take them: those of Hadoop's `FileSystem.globStatus`.

`?`, `*`, `[abc]`, `[a-c]`, `[^a]` within a name, `{a,b}` also across names and nested, and a backslash before a sign that
means itself. A path that exists as it is written is no pattern.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from urllib.parse import quote, unquote

from formats.secrets import redact_text
from kctl.errors import KctlError
from kctl.stores.file_systems import file_system, first_answer, is_url
from kctl.stores.objects import failure

SIGNS = re.compile(r"[?*\[{\\]")
_QUERY = re.compile(r"\?(?=[A-Za-z_]+=)[^/]*\Z")
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://[^/]*")
MOST_ALTERNATIVES = 10_000
ListFolders = Callable[[str], list[str]]
"""The names of the folders in a folder; none where there is no such folder."""


def matches(pattern: str) -> list[str]:
    """The folders that a path or a URL means, each once, in order; one without a sign of a pattern means itself.

    `KctlError` where a pattern matches no folder, or is none; what a store answers, where it does not.
    """
    query = match[0] if (match := _QUERY.search(pattern)) and "://" in pattern else ""
    path = pattern.removesuffix(query) if query else pattern
    if not SIGNS.search(path) or (not is_url(path) and os.path.lexists(path)):
        return [pattern]
    scheme = _SCHEME.match(path)
    authority = scheme[0] if scheme else ""
    list_folders = _listing(authority, query) if is_url(path) else _local_folders(authority)
    found: dict[str, None] = {}
    for alternative in _alternatives(path.removeprefix(authority), pattern):
        # An alternative in braces may be empty, which leaves no name.
        if path.endswith("/") or not alternative.endswith("/"):
            found |= dict.fromkeys(_below(alternative, list_folders, pattern))
    if not found:
        raise KctlError(
            f"{redact_text(pattern)}: no folder matches the pattern",
            "a `*` ends at a slash, and patterns match folders; without a pattern all that is below a folder is read",
        )
    return [f"{authority}{_quoted(folder) if authority else folder}{query}" for folder in sorted(found)]


def _quoted(path: str) -> str:
    return quote(path, safe="/:@!$&'()*+,;=~ ")


def _alternatives(text: str, whole: str) -> list[str]:
    """A pattern without braces for each way to take what stands in them."""
    waiting, out = [text], []
    while waiting:
        pattern = waiting.pop()
        parts = _first_braces(pattern, whole)
        if parts is None:
            out.append(pattern)
        else:
            before, inner, after = parts
            # A slash at the end of a choice ends the path, or stands beside another.
            if after[:1] in ("", "/"):
                inner = [choice.rstrip("/") for choice in inner]
            waiting += [before + choice + after for choice in inner]
        if len(waiting) + len(out) > MOST_ALTERNATIVES:
            raise KctlError(
                f"{redact_text(whole)}: the braces stand for more than {MOST_ALTERNATIVES:,} paths",
                "use a `*`",
            )
    return out


def _first_braces(pattern: str, whole: str) -> tuple[str, list[str], str] | None:
    start, depth, choices, begun, place = -1, 0, [], 0, 0
    while place < len(pattern):
        sign = pattern[place]
        if sign == "\\":
            place += 1
        elif sign == "{":
            depth += 1
            if depth == 1:
                start, begun = place, place + 1
        elif sign == "," and depth == 1:
            choices.append(pattern[begun:place])
            begun = place + 1
        elif sign == "}" and depth:
            depth -= 1
            if not depth:
                return pattern[:start], [*choices, pattern[begun:place]], pattern[place + 1 :]
        place += 1
    if depth:
        raise KctlError(
            f"{redact_text(whole)}: a brace is not closed", "close it, or write a backslash before it"
        )
    return None


def _below(pattern: str, list_folders: ListFolders, whole: str) -> Iterator[str]:
    """The folders that match a pattern without braces, level by level."""
    names = pattern.split("/")
    if not SIGNS.search(pattern):
        parent, _, name = pattern.rstrip("/").rpartition("/")
        if name in list_folders(parent or ("/" if pattern.startswith("/") else "")):
            yield pattern
        return
    first = next(i for i, name in enumerate(names) if SIGNS.search(name))
    folders = ["/".join(names[:first]) or ("/" if pattern.startswith("/") else "")]
    for name in filter(None, names[first:]):
        expression = _expression(name, whole)
        folders = [
            f"{folder.rstrip('/')}/{inner}" if folder else inner
            for folder in folders
            for inner in list_folders(folder)
            if expression.fullmatch(inner)
        ]
    yield from folders


def _expression(name: str, whole: str) -> re.Pattern[str]:
    out, place = "", 0
    while place < len(name):
        sign = name[place]
        if sign == "\\" and place + 1 < len(name):
            place += 1
            out += re.escape(name[place])
        elif sign == "*":
            out += ".*"
        elif sign == "?":
            out += "."
        elif sign == "[" and (end := name.find("]", place + 2)) > 0:
            inner = name[place + 1 : end].replace("\\", "\\\\").replace("[", "\\[")
            out += f"[{'^' + inner[1:] if inner[0] in '^!' else inner}]"
            place = end
        else:
            out += re.escape(sign)
        place += 1
    try:
        return re.compile(out, re.DOTALL)
    except re.error:
        raise KctlError(
            f"{redact_text(whole)}: {name!r} is no pattern",
            "a range goes from the smaller sign: [a-z], [0-9]",
        ) from None


def _local_folders(scheme: str) -> ListFolders:
    def names(folder: str) -> list[str]:
        try:
            with os.scandir((unquote(folder) if scheme else folder) or ".") as entries:
                return [entry.name for entry in entries if entry.is_dir()]
        except OSError:
            return []

    return names


def _listing(authority: str, query: str) -> ListFolders:
    """What lists folders of a store, which is asked for its first answer once."""
    from pyarrow import fs
    from pyarrow.lib import ArrowException

    files, root = first_answer(authority, lambda: file_system(f"{authority}/{query}"))
    is_flat = files.type_name == "gcs"  # whose client shows no folders, only what is below them

    def names(folder: str) -> list[str]:
        path = f"{root.rstrip('/')}/{unquote(folder).strip('/')}".rstrip("/")
        selector = fs.FileSelector(path or "/", recursive=is_flat, allow_not_found=True)
        try:
            infos = first_answer(authority, lambda: list(files.get_file_info(selector)))
        except (OSError, ValueError, ArrowException) as error:
            raise KctlError(
                f"{redact_text(authority + folder)}: {failure(error, folder).strerror}",
                "check the URL and the credentials in the environment",
            ) from None
        below = (str(info.path).strip("/").removeprefix(path.strip("/")).strip("/") for info in infos)
        if is_flat:
            return sorted({name.partition("/")[0] for name in below if "/" in name})
        return [
            name
            for info, name in zip(infos, below, strict=True)
            if info.type == fs.FileType.Directory and name
        ]

    return names
