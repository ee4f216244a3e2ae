"""Logs of several installations in one tree: brokers of one id that are not the same broker.

Folders with logs of one broker id may hold parts or copies of one log, or those of two clusters. They are apart where
their lines name other clusters, or where both have logs of one kind from the same time with other lines.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Sequence
from itertools import combinations
from pathlib import Path

from formats.values import replace
from kctl.broker_logs.log_files import LogFile
from kctl.broker_logs.opening import PEEKED, STDIN, chunks_of
from kctl.files import open_file
from kctl.findings import Finding, Place
from kctl.findings import state_log as say

CLUSTER_ID = re.compile(rb"(?:Cluster ID = |\bin cluster |with clusterId )([\w-]{22})(?![\w-])")
# Captured output and other files may repeat in another layout what logs hold.
COMPARED = ("state-change", "controller", "server")
# So many lines of the later log are looked for in the other one.
LOOKED_FOR = 20


def cluster_named(head: bytes) -> str | None:
    """The first cluster id that lines name."""
    found = CLUSTER_ID.search(head)
    return found[1].decode() if found else None


def told_apart(files: Sequence[LogFile], say_so: Callable[[Finding], None]) -> list[LogFile]:
    """The files with the numbers of their installations; what was split, and what may be joined wrongly, is said."""
    folders: dict[int, dict[str, list[LogFile]]] = {}
    for file in files:
        if file.broker_id is not None and file.path != STDIN and file.container is None:
            of_broker = folders.setdefault(file.broker_id, {})
            of_broker.setdefault(os.path.dirname(os.path.abspath(file.path)), []).append(file)
    apart: dict[str, int] = {}
    for of_broker in folders.values():
        for one, other in combinations(sorted(of_broker, key=lambda f: _begin(of_broker[f])), 2):
            if _installation(one, apart) != _installation(other, apart):
                continue
            is_same = _are_same(of_broker[one], of_broker[other])
            first, later = of_broker[one][0], of_broker[other][0]
            place = Place(broker_id=later.broker_id, file=later.file, evidence=later.evidence)
            if is_same is False:
                apart[_branch(one, other)] = len(apart) + 1
                say_so(say.LOG_OF_ANOTHER_INSTALLATION.at(place, broker=later.broker_id, first=first.file))
            elif is_same is None:
                say_so(say.LOG_FOLDERS_JOINED.at(place, broker=later.broker_id, first=first.file))
    if not apart:
        return list(files)
    return [replace(file, installation=_installation(os.path.abspath(file.path), apart)) for file in files]


def _begin(files: Sequence[LogFile]) -> int:
    return min(file.first_millis or 0 for file in files)


def _branch(one: str, other: str) -> str:
    """The highest folder that holds the other one and not the first; the other way round where that lies in it."""
    common = os.path.commonpath((one, other))
    if other == common:
        one, other = other, one
    return os.path.join(common, os.path.relpath(other, common).split(os.sep)[0])


def _installation(path: str, apart: dict[str, int]) -> int:
    """The number of the deepest of these folders that a path lies in."""
    below = [folder for folder in apart if path == folder or path.startswith(folder + os.sep)]
    return apart[max(below, key=len)] if below else 0


def _are_same(one: Sequence[LogFile], other: Sequence[LogFile]) -> bool | None:
    """Whether two folders have logs of the same broker; None where nothing tells it."""
    ids, others = ({file.cluster_id for file in files} - {None} for files in (one, other))
    if ids & others:
        return True
    pairs = [[[file for file in files if file.kind == kind] for files in (one, other)] for kind in COMPARED]
    compared = [_are_copies(first, later) for first, later in pairs if first and later]
    if ids and others:
        return True in compared
    # Logs of different kinds complete each other.
    return next((answer for answer in (True, False, None) if answer in compared), True)


def _are_copies(first: Sequence[LogFile], later: Sequence[LogFile]) -> bool | None:
    """Whether logs of one kind and the same time have the same lines; None where they are of different times."""
    for file in later:
        there = [one for one in first if _holds(one, file)]
        if there:
            lines = _first_lines(file)
            return any(_has_one(one, lines) for one in there)
    return None


def _holds(file: LogFile, other: LogFile) -> bool:
    """Whether a log has lines from before the other one begins and from after it, laid out as its own."""
    if file.layout.name != other.layout.name or file.first_millis is None or other.first_millis is None:
        return False
    last = _last_millis(file)
    return last is not None and file.first_millis <= other.first_millis <= last


def _last_millis(file: LogFile) -> int | None:
    """The time of the last record; None for a compressed file."""
    try:
        with open_file(Path(file.path)) as stream:
            stream.seek(max(os.fstat(stream.fileno()).st_size - PEEKED, 0))
            tail = stream.read()
    except OSError:
        return None
    millis = file.layout.find(tail[: tail.rfind(b"\n") + 1]).millis
    return None if not len(millis) else int(millis[-1]) + (file.day or 0)


def _first_lines(file: LogFile) -> list[bytes]:
    """The first lines with a time, whole."""
    head = _head(file)
    starts = file.layout.find(head).starts[:LOOKED_FOR].tolist()
    return [head[start : head.find(b"\n", start)] for start in starts]


def _head(file: LogFile) -> bytes:
    head = next(chunks_of(file.path, lambda reason: None, size=PEEKED), b"")
    return head[: head.rfind(b"\n") + 1]


def _has_one(file: LogFile, lines: list[bytes]) -> bool:
    rest = b""
    for chunk in chunks_of(file.path, lambda reason: None):
        text = rest + chunk
        if any(line in text for line in lines):
            return True
        rest = text[-PEEKED:]
    return False
