"""Which files are the logs of which broker, and in which order the parts of a rotated log follow each other."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import NamedTuple

from formats.errors import FormatError
from formats.log_layouts import Layout, detect, layout_of_pattern
from formats.log_lines import broker_named
from kctl.broker_logs.opening import PEEKED, STDIN, chunks_of
from kctl.errors import BadValue, KctlError, UnreadableFile, reason_of
from kctl.evidence.discover import discover
from kctl.evidence.model import BrokerLog, Evidence, Root
from kctl.evidence.names import broker_log_kind
from kctl.findings import Finding, Place
from kctl.findings import state_log as say

Say = Callable[[Finding], None]
DATED = re.compile(r"\d{4}-\d\d-\d\d(?:-\d\d)?")
NUMBERED = re.compile(r"(?:[._-])(\d{1,6})(?:\.(?:gz|zst))?$")
SUFFIX = re.compile(r"(?:[._-]\d[\d.-]*)?(?:\.(?:gz|zst))?$")
KINDS = ("state-change", "controller", "server", "log-cleaner", "stdout", "other")


@dataclass(frozen=True, slots=True)
class LogFile:
    """One file of a broker's log."""

    path: str
    file: str
    """As rows name it."""
    kind: str
    broker_id: int | None
    layout: Layout
    first_millis: int | None
    """Local time of its first record."""
    is_utc: bool = False
    """Whether its times name their offset, so that no zone has to be known."""
    evidence: str | None = None


@dataclass(frozen=True, slots=True)
class LogSource:
    """The parts of one log of one broker, oldest first."""

    broker_id: int | None
    kind: str
    files: tuple[LogFile, ...]


@dataclass(slots=True)
class Sources:
    """Everything that was found to read."""

    sources: tuple[LogSource, ...]
    findings: list[Finding] = field(default_factory=list)
    failures: list[KctlError] = field(default_factory=list)

    @property
    def files(self) -> Iterator[LogFile]:
        """Every file, source by source."""
        return (file for source in self.sources for file in source.files)


class Candidate(NamedTuple):
    """A file that may be a log, before it was looked into."""

    path: str
    file: str
    kind: str
    broker_id: int | None
    evidence: str | None
    is_named: bool


def find_sources(
    paths: Sequence[str], *, brokers: Sequence[str] = (), layouts: Sequence[Layout] = ()
) -> Sources:
    """The logs below the paths: files, folders of logs, whole evidence folders, `-` for standard input.

    `brokers` holds texts `ID=FOLDER`. A path that cannot be opened is among `failures`; a file below a folder
    that cannot be read, is empty or no log is among `findings`.
    """
    found = Sources(())
    evidence = discover([path for path in paths if path != STDIN], brokers=brokers)
    found.failures.extend(evidence.failures)
    found.findings.extend(
        f for f in evidence.findings if f.place.file and broker_log_kind(Path(f.place.file).name)
    )
    files = []
    for one in _unique(_candidates(evidence, paths), found.findings.append):
        file = _looked_into(one, layouts, found)
        if file is not None:
            files.append(file)
    found.sources = tuple(_chained(_with_brokers(files)))
    return found


def _candidates(evidence: Evidence, paths: Sequence[str]) -> Iterator[Candidate]:
    several = len(evidence.roots) > 1
    if STDIN in paths:
        yield Candidate(STDIN, STDIN, "other", None, None, True)
    for log in evidence.broker_logs:
        yield _candidate(evidence, log.path, log.root, _kind(log), log.broker_id, several)
    for path, root in evidence.files:
        yield _candidate(
            evidence, path, root, "stdout" if path.name.endswith(".out") else "other", None, several
        )


def _kind(log: BrokerLog) -> str:
    return str(log.kind)


def _candidate(
    evidence: Evidence, path: Path, root: Root, kind: str, broker_id: int | None, several: bool
) -> Candidate:
    place = evidence.place_of(path, root)
    # A file that was named is told apart by its own path; only folders need naming beside it.
    beside = place.evidence if several and root.is_folder else None
    return Candidate(str(path), place.file or str(path), kind, broker_id, beside, not root.is_folder)


def _unique(candidates: Iterable[Candidate], say_so: Say) -> Iterator[Candidate]:
    """Each file once, whatever names lead to it."""
    seen: dict[tuple[int, int], str] = {}
    for one in candidates:
        if one.path != STDIN:
            try:
                status = os.stat(one.path)
            except OSError:
                yield one
                continue
            key = status.st_dev, status.st_ino
            if key in seen:
                say_so(say.LOG_GIVEN_TWICE.at(_place(one), first=seen[key]))
                continue
            seen[key] = one.file
        yield one


def _place(one: Candidate | LogFile) -> Place:
    return Place(file=one.file, broker_id=one.broker_id, evidence=one.evidence)


def _looked_into(one: Candidate, layouts: Sequence[Layout], found: Sources) -> LogFile | None:
    """What the start of a file says: its layout, its broker and its first time. None for what is no log."""
    head, broken = b"", list[str]()
    try:
        for chunk in chunks_of(one.path, broken.append, size=PEEKED):
            head = chunk
            break
    except OSError as error:
        reason = reason_of(error)
        if one.is_named:
            found.failures.append(UnreadableFile(f"{one.file}: {reason}"))
        else:
            found.findings.append(say.LOG_UNREADABLE.at(_place(one), reason=reason))
        return None
    if not head and broken:
        found.findings.append(say.LOG_GZIP_DAMAGED.at(_place(one), lines=0, reason=broken[0]))
        return None
    if not head:
        if one.path != STDIN:
            found.findings.append(say.LOG_EMPTY.at(_place(one)))
        return None
    layout, first = detect(head, layouts)
    if layout is None:
        found.findings.append(say.LOG_NOT_TEXT.at(_place(one), examined=len(head)))
        return None
    broker_id = one.broker_id
    if broker_id is None:
        broker_id = broker_named(head)
    return LogFile(
        one.path, one.file, one.kind, broker_id, layout, first, layout.has_zone(head), one.evidence
    )


def _with_brokers(files: list[LogFile]) -> list[LogFile]:
    """Files that do not name their broker take the one that the other logs in their folder name."""
    by_folder: dict[str, set[int]] = {}
    for file in files:
        if file.broker_id is not None:
            by_folder.setdefault(os.path.dirname(file.path), set()).add(file.broker_id)
    out = []
    for file in files:
        ids = by_folder.get(os.path.dirname(file.path), set())
        if file.broker_id is None and len(ids) == 1:
            file = replace(file, broker_id=next(iter(ids)))
        out.append(file)
    return out


def _chained(files: list[LogFile]) -> Iterator[LogSource]:
    groups: dict[tuple[int | None, str, str], list[LogFile]] = {}
    for file in files:
        # Without a broker id only the name says that two files are parts of one log.
        apart = "" if file.broker_id is not None and file.kind != "other" else _stem(file.path)
        groups.setdefault((file.broker_id, file.kind, apart), []).append(file)
    for (broker_id, kind, _), parts in sorted(groups.items(), key=_source_order):
        yield LogSource(broker_id, kind, tuple(sorted(parts, key=_part_order)))


def _source_order(item: tuple[tuple[int | None, str, str], list[LogFile]]) -> tuple[object, ...]:
    broker_id, kind, apart = item[0]
    return (broker_id is None, broker_id or 0, KINDS.index(kind), apart)


def _stem(path: str) -> str:
    folder, name = os.path.split(path)
    return f"{folder}/{SUFFIX.sub('', name)}"


def _part_order(file: LogFile) -> tuple[object, ...]:
    """Rotated parts by the time of their first record; the suffix decides where that is the same."""
    name = os.path.basename(file.path)
    dated = DATED.search(name)
    numbered = None if dated else NUMBERED.search(name)
    suffix = (0, dated[0], 0) if dated else (1, "", -int(numbered[1])) if numbered else (2, "", 0)
    first = file.first_millis if file.first_millis is not None else -1
    return (first, suffix, file.path)


def layouts_of(patterns: Sequence[str]) -> tuple[Layout, ...]:
    """Layouts of log4j patterns given by hand; `BadValue` for one without a time or a message."""
    found = []
    for pattern in patterns:
        try:
            found.append(layout_of_pattern(pattern))
        except FormatError as error:
            raise BadValue(f"--pattern {pattern!r}: {error.what}") from error
    return tuple(found)


def only_brokers(found: Sources, ids: Sequence[str]) -> Sources:
    """The sources of some brokers; `BadValue` where a text is no id or none of them has a log here."""
    for text in ids:
        if not (text.isascii() and text.isdigit()):
            raise BadValue(f"--broker {text!r} is no broker id")
    wanted = {int(text) for text in ids}
    there = {source.broker_id for source in found.sources}
    if not wanted & there:
        known = ", ".join(str(i) for i in sorted(i for i in there if i is not None))
        raise BadValue(
            f"no log of broker {', '.join(ids)} here", f"there are logs of {known or 'no known broker'}"
        )
    return replace(found, sources=tuple(s for s in found.sources if s.broker_id in wanted))
