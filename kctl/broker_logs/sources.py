"""Which files are the logs of which broker, and in which order the parts of a rotated log follow each other."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

from formats.broker_logs.layouts import (
    KAFKA,
    CarriedLayout,
    LineLayout,
    detect,
    export_of,
    is_export,
    layout_of_name,
    layout_of_pattern,
    millis_of,
    settled_date,
)
from formats.broker_logs.line import writers_named
from formats.broker_logs.table import OWN_PACKAGES, full_name
from formats.broker_logs.unknown_logs import nearest, other_system
from formats.errors import FormatError
from formats.values import Struct, field, replace
from formats.whole_numbers import whole_number
from kctl.broker_logs.named_brokers import cut_at_lines, with_brokers_by_name
from kctl.errors import BadValue, KctlError, file_error, near_names, reason_of
from kctl.evidence.discover import discover
from kctl.evidence.model import BrokerLog, FoundEvidence, Root
from kctl.evidence.names import broker_log_kind
from kctl.findings import Finding, Place
from kctl.findings import state_log as codes
from kctl.findings.evidence import LOGS_LEFT, NOT_LOOKED_INTO, OF_ANOTHER_SYSTEM
from kctl.text_logs.containers import NUMBERS, OTHERS, Part, parts_of
from kctl.text_logs.log_files import LogFile, LogSource
from kctl.text_logs.opening import PEEKED, STDIN, chunks_of, spooled_stdin, tail_of

Say = Callable[[Finding], None]
NAMED = 20  # containers or files that a finding names
DATED = re.compile(r"\d{4}-\d\d-\d\d(?:-\d\d)?")
NUMBERED = re.compile(r"(?:[._-])(\d{1,6})(?:\.(?:gz|zst|xz))?$")
SUFFIX = re.compile(r"(?:[._-]\d[\d.-]*)?(?:\.(?:gz|zst|xz))?$")
# Other software whose lines stand in brokers' logs; of an hour without Kafka's own lines nothing is strange.
OTHER_PACKAGES = ("org.", "com.", "io.", "java", "sun.", "jdk.", "scala.")
KAFKAS_OWN = ("state-change", "controller", "server", "log-cleaner")
KAFKAS_LOGGER = re.compile(rb" \((?:kafka|state\.change|org\.apache\.kafka)\.[\w.$]+\)[ \t\r]*\n")
KINDS = ("state-change", "controller", "server", "log-cleaner", "stdout", "other")


class Sources(Struct):
    """Everything that was found to read."""

    sources: tuple[LogSource, ...]
    findings: list[Finding] = field(default_factory=list)
    failures: list[KctlError] = field(default_factory=list)
    copies_left: list[str] = field(default_factory=list)
    """Files with lines of several brokers that have logs of their own, which are read in their place."""
    brokers: frozenset[int] = frozenset()
    """The brokers asked for, of logs that several write to; empty for all."""
    evidence: FoundEvidence | None = None
    """Where they were found, with all else that lies there."""

    @property
    def of_other_systems(self) -> list[Finding]:
        """The findings that say of a file that another system than Kafka wrote it."""
        foreign = (OF_ANOTHER_SYSTEM.code, codes.LOG_OF_ANOTHER_SYSTEM.code)
        return [finding for finding in self.findings if finding.code in foreign]

    @property
    def files(self) -> Iterator[LogFile]:
        """Every file, source by source."""
        return (file for source in self.sources for file in source.files)


class LogCandidate(NamedTuple):
    """A file that may be a log, before it was looked into."""

    path: str
    file: str
    kind: str
    broker_id: int | None
    evidence: str | None
    is_named: bool

    @property
    def place(self) -> Place:
        """Where findings about the file are."""
        return Place(file=self.file, broker_id=self.broker_id, evidence=self.evidence)


def find_sources(
    paths: Sequence[str],
    *,
    brokers: Sequence[str] = (),
    layouts: Sequence[LineLayout] = (),
    names_all: bool = False,
) -> Sources:
    """The logs below the paths: files, folders of logs, whole evidence folders, `-` for standard input.

    `brokers` holds texts `ID=FOLDER`, or `ID=NAME` of a pod, container or host that printed lines. `names_all`: of a log that several brokers write to, all are named. A path that cannot be opened is among `failures`; a file below a folder
    that cannot be read, is empty or no log is among `findings`.
    """
    folders, names = _folders_and_names(brokers)
    evidence = discover([path for path in paths if path != STDIN], brokers=folders)
    return sources_in(evidence, layouts, reads_stdin=STDIN in paths, names_all=names_all, names=names)


def _folders_and_names(brokers: Sequence[str]) -> tuple[list[str], dict[str, int]]:
    """The texts `ID=FOLDER`, and the brokers of those that name something else than what lies in the file system."""
    folders, names = [], {}
    for text in brokers:
        id_text, _, name = text.partition("=")
        broker_id = whole_number(id_text)
        if broker_id is None or not name or "/" in name or os.path.lexists(name):
            folders.append(text)
        else:
            names[name] = broker_id
    return folders, names


def sources_in(
    evidence: FoundEvidence,
    layouts: Sequence[LineLayout] = (),
    *,
    reads_stdin: bool = False,
    names_all: bool = False,
    names: Mapping[str, int] | None = None,
) -> Sources:
    """The same of evidence whose folders are known, with the broker ids that were given for them and for `names`."""
    sources = Sources((), evidence=evidence)
    sources.failures.extend(evidence.failures)
    sources.findings.extend(
        f
        for f in evidence.findings
        if f.code in (NOT_LOOKED_INTO.code, OF_ANOTHER_SYSTEM.code)
        or (f.place.file and broker_log_kind(Path(f.place.file).name))
    )
    _tell_of_left(evidence, sources)
    files = []
    writers = _Writers(names_all=names_all)
    for candidate in _unique(_candidates(evidence, reads_stdin), sources.findings.append):
        files += _looked_into(candidate, layouts, sources, writers)
    files, names_met = with_brokers_by_name(_with_brokers(files), names or {}, sources.findings.append)
    for name in (names or {}).keys() - names_met:
        printed = sorted({file.printed_by for file in files if file.printed_by})
        sources.failures.append(
            BadValue(
                f"--broker {(names or {})[name]}={name}: no such folder, and no line was printed by {name}",
                near_names(name, printed, otherwise=f"lines were printed by {', '.join(printed[:5]) or 'nobody who is named'}"),
            )
        )  # fmt: skip
    sources.sources = tuple(_chained(files))
    return sources


def _tell_of_left(evidence: FoundEvidence, sources: Sources) -> None:
    """Note the logs that are not read: those with lines of brokers without another log in a finding."""
    known = {log.broker_id for log in evidence.broker_logs}
    by_place: dict[Place, list[str]] = {}
    for path, root, brokers in evidence.logs_left:
        name = evidence.place_of(path, root).file or str(path)
        if brokers and brokers <= known:
            sources.copies_left.append(name)
        else:
            by_place.setdefault(evidence.place_of(root.path, root), []).append(name)
    for place, names in by_place.items():
        sources.findings.append(LOGS_LEFT.at(place, count=len(names), names=some_of(names)))


def some_of(names: Sequence[str]) -> str:
    """The first names, and how many more there are."""
    return ", ".join(names[:NAMED]) + (f" and {len(names) - NAMED:,} more" if len(names) > NAMED else "")


def _candidates(evidence: FoundEvidence, reads_stdin: bool) -> Iterator[LogCandidate]:
    several = len(evidence.roots) > 1
    if reads_stdin:
        yield LogCandidate(STDIN, STDIN, "other", None, None, True)
    for log in evidence.broker_logs:
        yield _candidate(evidence, log.path, log.root, _kind(log), log.broker_id, several)
    for path, root in (*evidence.files, *evidence.unnamed_files):
        yield _candidate(
            evidence, path, root, "stdout" if path.name.endswith(".out") else "other", None, several
        )


def _kind(log: BrokerLog) -> str:
    return str(log.kind)


def _candidate(
    evidence: FoundEvidence, path: Path, root: Root, kind: str, broker_id: int | None, several: bool
) -> LogCandidate:
    place = evidence.place_of(path, root)
    # A file that was named is told apart by its own path; only folders need naming beside it.
    beside = place.evidence if several and root.is_folder else None
    return LogCandidate(str(path), place.file or str(path), kind, broker_id, beside, not root.is_folder)


def _unique(candidates: Iterable[LogCandidate], say_so: Say) -> Iterator[LogCandidate]:
    """Each file once, whatever names lead to it."""
    file_by_inode: dict[tuple[int, int], str] = {}
    for candidate in candidates:
        if candidate.path != STDIN:
            try:
                status = os.stat(candidate.path)
            except OSError:
                yield candidate
                continue
            key = status.st_dev, status.st_ino
            if key in file_by_inode:
                say_so(codes.LOG_GIVEN_TWICE.at(candidate.place, first=file_by_inode[key]))
                continue
            file_by_inode[key] = candidate.file
        yield candidate


class _Writers:
    """The brokers that lines of files name as their writers, of which two are enough: several write to the files."""

    def __init__(self, *, names_all: bool) -> None:
        self._names_all = names_all
        self._of_group: dict[str, set[int]] = {}

    def of(self, candidate: LogCandidate, layout: LineLayout, head: bytes) -> frozenset[int]:
        """Those of a file, by its start and its end; none where files that it was written with have several."""
        known = self._of_group.setdefault(_written_with(candidate), set())
        if len(known) > 1 and not self._names_all:
            return frozenset()
        writers = writers_named(layout.bare(head))
        # Brokers that its start does not name may have written to the rest of it.
        if len(head) == PEEKED and (len(writers) < 2 or self._names_all):
            with suppress(OSError):  # reading its lines meets the same error, and tells it
                writers |= writers_named(layout.bare(tail_of(candidate.path, PEEKED)))
        known |= writers
        return frozenset(writers)


def _looked_into(
    candidate: LogCandidate, layouts: Sequence[LineLayout], sources: Sources, writers: _Writers
) -> list[LogFile]:
    """What the start of a file says: its layout, its broker and its first time. Nothing for what is no log."""
    head, broken = b"", list[str]()
    try:
        for chunk in chunks_of(
            candidate.path,
            broken.append,
            size=PEEKED,
            is_as_written=bool(layouts) and not any(map(is_export, layouts)),
        ):
            head = chunk
            break
    except OSError as error:
        if candidate.is_named:
            sources.failures.append(file_error(candidate.file, error))
        else:
            sources.findings.append(codes.LOG_UNREADABLE.at(candidate.place, reason=reason_of(error)))
        return []
    if not head and broken:
        sources.findings.append(codes.LOG_GZIP_DAMAGED.at(candidate.place, lines=0, reason=broken[0]))
        return []
    if not head or (len(head) < PEEKED and head.isspace()):
        if candidate.path != STDIN:
            sources.findings.append(codes.LOG_EMPTY.at(candidate.place))
        return []
    system = other_system(head)
    if system is not None:
        sources.findings.append(codes.LOG_OF_ANOTHER_SYSTEM.at(candidate.place, system=system.name))
        if not system.is_kafka:
            return []
    layout, first = detect(head, layouts)
    if layout is None:
        finding = codes.LOG_NOT_TEXT.at(candidate.place, examined=len(head), nearest=nearest(head))
        sources.findings.append(finding)
        return []
    if not layouts:
        layout, first, date = settled_date(layout, first, head, partial(_tail, candidate))
    if not layouts and date:
        sources.findings.append(codes.LOG_DAY_OR_MONTH.at(candidate.place, date=date))
    strange = _strange_loggers(head, layout) if candidate.kind in KAFKAS_OWN or candidate.is_named else ()
    if strange:
        finding = codes.LOG_LOGGERS_UNKNOWN.at(
            candidate.place, loggers=", ".join(strange[:3]), examined=len(head)
        )
        sources.findings.append(finding)
    printed_by, part = None, ""
    if isinstance(layout, CarriedLayout) and layout.origin:
        if candidate.path == STDIN:
            candidate = candidate._replace(path=spooled_stdin())
        parts = _parts_of(candidate, layout, head, sources)
        if len(parts) > 1:
            return _of_containers(candidate, parts, layouts, sources)
        printed_by, part = next(((_text(name), part.path) for name, part in parts.items()), (None, ""))
    if _log_file(candidate, layout, head, first, frozenset()).is_without_date:
        sources.findings.append(codes.LOG_WITHOUT_DATE.at(candidate.place, layout=layout.name))
        return []
    file = _log_file(candidate, layout, head, first, writers.of(candidate, layout, head))
    return [replace(file, printed_by=printed_by, part=part)]


_parts: dict[tuple[object, ...], tuple[dict[bytes, Part], list[str]]] = {}
"""The parts of files that were taken apart, and what was damaged in them; they stay until the process ends."""


def _parts_of(
    candidate: LogCandidate, layout: CarriedLayout, head: bytes, sources: Sources
) -> dict[bytes, Part]:
    """The lines of each process that printed into a file; one alone is no part, unless its lines are hard to find."""
    origin = layout.origin
    if origin is None:
        return {}
    parts = parts_of([head], origin)
    if len(head) < PEEKED or (is_export(layout) and not parts):
        return parts
    as_written = not is_export(layout)
    if as_written and len(parts) < 2:  # another may begin to print later
        whole = chunks_of(candidate.path, lambda reason: None, is_as_written=True)
        names: set[bytes] = set(parts)
        if not any(len(names := names | layout.origins(chunk)) > 1 for chunk in cut_at_lines(whole)):
            return parts
    status = os.stat(candidate.path)
    key = (status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, layout.name)
    if key not in _parts:
        broken: list[str] = []
        whole = chunks_of(candidate.path, broken.append, is_as_written=as_written)
        _parts[key] = parts_of(whole, origin, _folder_of_parts()), broken
    parts, broken = _parts[key]
    if broken and any(part.path for part in parts.values()):  # else it is told where they are read
        lines = sum(os.path.getsize(part.path + NUMBERS) // 8 for part in parts.values())
        sources.findings.append(codes.LOG_GZIP_DAMAGED.at(candidate.place, lines=lines, reason=broken[0]))
    return parts


def _folder_of_parts() -> Path | None:
    """A folder of its own for the parts of a file, which goes when the process ends; None where none can be made."""
    import atexit

    from kctl.temporary_folder import new_folder

    try:
        folder = new_folder("logs")
    except OSError:
        return None
    atexit.register(folder.remove)
    return folder.path


def _text(name: bytes) -> str:
    return name.decode("utf-8", "backslashreplace")


def _day_named(path: str) -> int | None:
    """Midnight of the day in a file's name, in milliseconds of its own clock."""
    day = DATED.search(os.path.basename(path))
    return millis_of(f"{day[0][:10]} 00:00:00".encode()) if day else None


def _strange_loggers(head: bytes, layout: LineLayout) -> tuple[str, ...]:
    """The loggers at the start of a log where none is a class that kctl knows, nor one of another system."""
    if layout is KAFKA and KAFKAS_LOGGER.search(head):
        return ()
    starts = layout.find(head).starts.tolist()
    loggers: dict[str, None] = {}
    for first, last in pairwise([*starts, len(head)]):
        record_head = layout.split(head[first:last])
        if record_head and record_head.logger and record_head.logger not in loggers:
            if full_name(record_head.logger).startswith((*OWN_PACKAGES, *OTHER_PACKAGES)):
                return ()
            loggers[record_head.logger] = None
    return tuple(loggers)


def _tail(candidate: LogCandidate) -> bytes:
    with suppress(OSError):  # reading its lines meets the same error, and tells it
        return tail_of(candidate.path, PEEKED)
    return b""


def _of_containers(
    candidate: LogCandidate, parts: dict[bytes, Part], layouts: Sequence[LineLayout], sources: Sources
) -> list[LogFile]:
    """The log of each container of a stream; what its lines say decides whose it is."""
    candidate = candidate._replace(broker_id=None)
    files, unknown = [], []
    for container, (head, path) in parts.items():
        layout, first = detect(head, layouts)
        is_of_several = container == OTHERS
        name = "others" if is_of_several else _text(container)
        if layout is None or (is_of_several and not path):
            unknown.append(name)
            continue
        if not layouts:
            layout, first, _ = settled_date(layout, first, head, partial(_tail, candidate))
        writers = frozenset() if is_of_several else frozenset(writers_named(layout.bare(head)))
        file = _log_file(candidate, layout, head, first, writers)
        if file.is_without_date:
            unknown.append(name)
            continue
        is_first = container == next(iter(parts))
        printed_by = None if is_of_several else name
        files.append(replace(file, container=container, is_first=is_first, printed_by=printed_by, part=path))
    if unknown:
        sources.findings.append(codes.LOG_CONTAINER_UNKNOWN.at(candidate.place, containers=some_of(unknown)))
    return files


def _log_file(
    candidate: LogCandidate, layout: LineLayout, head: bytes, first: int | None, writers: frozenset[int]
) -> LogFile:
    broker_id = candidate.broker_id
    if broker_id is None and len(writers) == 1:
        broker_id = next(iter(writers))
    is_utc = layout.has_zone(head)
    day = None if is_utc or layout.has_date else _day_named(candidate.path)
    return LogFile(
        candidate.path,
        candidate.file,
        candidate.kind,
        broker_id,
        layout,
        first if day is None or first is None else day + first,
        is_utc,
        day,
        candidate.evidence,
        writers,
    )


def _with_brokers(files: list[LogFile]) -> list[LogFile]:
    """Files that do not name their broker take the one that the other logs in their folder name.

    Kafka's own logs in one folder are written by the same processes: where they name several brokers, none of them is
    that of one.
    """
    by_folder: dict[str, set[int]] = {}
    together: dict[str, set[int]] = {}
    for file in files:
        folder = os.path.dirname(file.path)
        if file.broker_id is not None:
            by_folder.setdefault(folder, set()).add(file.broker_id)
        together.setdefault(_of_process(file), set()).update(file.writers)
    out = []
    for file in files:
        folder = os.path.dirname(file.path)
        ids = by_folder.get(folder, set())
        if len(together.get(folder, ())) > 1:  # Kafka's own logs there: another one may be of any of them
            ids = set()
        writers = together[_of_process(file)]
        if len(writers) > 1:
            file = replace(file, broker_id=None, writers=frozenset(writers))
        elif file.broker_id is None and len(ids) == 1 and file.container is None:
            file = replace(file, broker_id=next(iter(ids)))
        out.append(file)
    return out


def _of_process(file: LogFile) -> str:
    return _written_with(file) if file.container is None else _apart(file)


def _written_with(file: LogCandidate | LogFile) -> str:
    """The same for files that the same processes write."""
    return _stem(file.path) if file.kind in ("stdout", "other") else os.path.dirname(file.path)


def _chained(files: list[LogFile]) -> Iterator[LogSource]:
    groups: dict[tuple[int | None, str, str], list[LogFile]] = {}
    for file in files:
        # But for Kafka's own logs of one broker the name says that two files are parts of one log.
        apart = "" if file.broker_id is not None and file.kind in KAFKAS_OWN else _apart(file)
        groups.setdefault((file.broker_id, file.kind, apart), []).append(file)
    for (broker_id, kind, _), parts in sorted(groups.items(), key=_source_order):
        yield LogSource(broker_id, kind, tuple(sorted(parts, key=_part_order)))


def _source_order(item: tuple[tuple[int | None, str, str], list[LogFile]]) -> tuple[object, ...]:
    broker_id, kind, apart = item[0]
    return (broker_id is None, broker_id or 0, KINDS.index(kind), apart)


def _apart(file: LogFile) -> str:
    """The same for parts of one log."""
    return (
        f"{_stem(file.path)}\0{file.container.decode()}" if file.container is not None else _stem(file.path)
    )


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


def layouts_of(patterns: Sequence[str], names: Sequence[str] = ()) -> tuple[LineLayout, ...]:
    """Layouts given by hand, as log4j patterns and as names or regular expressions; `BadValue` for what is none."""
    descriptions: list[tuple[str, str, Callable[[str], LineLayout]]]
    descriptions = [("--pattern", text, layout_of_pattern) for text in patterns]
    descriptions += [("--layout", text, layout_of_name) for text in names]
    layouts = []
    for option, text, layout_of in descriptions:
        try:
            layouts.append(layout_of(text))
        except FormatError as error:
            raise BadValue(
                f"{option} {text!r}: {error.what}",
                r"describe a line as --layout '(?P<time>.{23}) (?P<level>\w+) (?P<message>.*)', or give a log4j pattern "
                "as --pattern '%d %p %c - %m%n'",
            ) from error
    return tuple(layouts)


def layout_in_words(file: LogFile) -> str:
    """How the lines of a log were found, in a sentence: its layout, and what it was exported as."""
    parts = [f"the layout {file.layout.name}"]
    if is_export(file.layout):
        head = next(chunks_of(file.path, lambda reason: None, size=PEEKED, is_as_written=True), b"")
        export = export_of(head)
        parts = [export.name if export else "an export", f"in the layout {file.layout.innermost.name}"]
    if file.printed_by:
        parts.append(f"printed by {file.printed_by!r}")
    broker = "an unknown broker" if file.broker_id is None else f"broker {file.broker_id}"
    if file.broker_by_name:
        broker += f" by the name {file.broker_by_name!r} alone"
    times = "times with their offset" if file.is_utc else "local times"
    return f"{file.file}: {', '.join(parts)}, of {broker}, {times}"


def only_brokers(sources: Sources, ids: Sequence[str]) -> Sources:
    """The sources of some brokers; `BadValue` where a text is no id or none of them has a log here."""
    broker_ids = set()
    for text in ids:
        if (id := whole_number(text)) is None:
            raise BadValue(
                f"--broker {text!r} is not a broker id", "write the number, as in broker.id or node.id"
            )
        broker_ids.add(id)
    known_ids = {broker_id for source in sources.sources for broker_id in _brokers_of(source)}
    if not broker_ids & known_ids:
        shown_ids = ", ".join(map(str, sorted(known_ids)))
        raise BadValue(
            f"no log of broker {', '.join(ids)} here", f"there are logs of {shown_ids or 'no known broker'}"
        )
    chosen = tuple(source for source in sources.sources if broker_ids & _brokers_of(source))
    return replace(sources, sources=chosen, brokers=frozenset(broker_ids))


def _brokers_of(source: LogSource) -> frozenset[int]:
    """The brokers that write to a log, as far as its start says."""
    if source.broker_id is not None:
        return frozenset((source.broker_id,))
    return frozenset().union(*(file.writers for file in source.files))
