"""The broker that wrote a folder of logs: by names, by the lines in them, by log directories near them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from pathlib import Path

from formats.broker_logs.layouts import KAFKA, detect
from formats.broker_logs.line import Head, writers_named
from kctl.evidence.identity import named_broker_id
from kctl.evidence.model import BrokerLog, LogDir
from kctl.evidence.names import broker_id_of
from kctl.text_logs.opening import chunks_of
from kctl.text_logs.shapes import shape_of

LOOKED_AT = 1 << 18  # bytes at the start of a log
DECIDES = 1 << 16  # bytes of them by which a file of any name is a log or none
# What a broker says of its configuration as it starts.
OWN_BROKER_ID = re.compile(
    rb"\.id (?:(?:(?<=\bbroker\.id )|(?<=\bnode\.id ))= |(?<=\bProperty broker\.id )is overridden to )(\d+)"
)
# A class that only brokers and controllers have; clients and Connect have others.
_BROKER_CLASS = (
    rb"(?:state\.change\.logger|kafka\.(?:controller|server|cluster|log|coordinator|zk|raft)\.[\w.$]+"
    rb"|org\.apache\.kafka\.(?:controller|image|raft|metadata|storage|server)\.[\w.$]+)"
)
# A line of Kafka's own layout begins and ends so: to look for its end first is many times as fast.
BEGIN = re.compile(rb"\[\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3}\] [A-Z]+ ")
END = re.compile(rb" \(" + _BROKER_CLASS + rb"(?::\d+)?\)[ \t\r]*$", re.MULTILINE)
# In other layouts the class is a word of the line.
BROKER_CLASS = re.compile(rb"(?<![\w.$])" + _BROKER_CLASS)
# A line of a broker has a level, whatever carried it. Exports may write it in small letters, or leave it out beside a
# class of brokers, and one layout has none; then Kafka is named. In JSON a text that is no UTF-8 is a list of numbers.
LEVELS = (b"INFO", b"WARN", b"ERROR", b"FATAL", b"DEBUG", b"TRACE")
NAMES = (b"kafka", b"Kafka", b"KAFKA", b"state.change.logger")
# Each begins with a plain text or is looked for only where there is one, which is many times as fast.
SMALL_LEVEL = re.compile(
    rb"(?<![\w-])(?:trace|debug|info|warn(?:ing)?|error|fatal)(?![\w-]|\\*[\"']?\s*:)", re.IGNORECASE
)
ANY_CLASS = re.compile(_BROKER_CLASS)
NO_LEVEL = re.compile(rb":\d\d(?:[,.]\d{1,9})?(?: ?(?:Z|[+-]\d\d:?\d\d))? \[[\w$]+\] ")
NUMBERS = re.compile(rb"\[(?:\s*\d{1,3}\s*,){20}")
# Rows as kctl prints them, in each of its forms.
OWN_ROWS = re.compile(rb"\s*(?:\[\s*)?\{\"kind\":|kind\t")
SETTING = re.compile(rb"^\s*(?:broker|node)\.id\s*=\s*(\d+)\s*$", re.MULTILINE)


def start_of_export(path: Path) -> bytes | None:
    """The start of a file of any name that is mostly lines that a broker or controller wrote; None of any other.

    Notes that quote some are none, nor are rows that kctl itself has printed of logs.
    """
    if not may_be_export(_head(path, is_as_written=True)):
        return None
    head = _head(path)
    return head if is_mostly_broker_lines(head) else None


def may_be_export(head: bytes) -> bool:
    """Whether a file that starts like this may hold lines of brokers, by a quick look, and is not what kctl has printed."""
    return _may_hold_lines(head) and OWN_ROWS.match(head) is None


def _may_hold_lines(head: bytes) -> bool:
    if any(level in head for level in LEVELS):
        return True
    if not any(name in head for name in NAMES):
        return False
    small = head.lower()
    return (
        (any(level.lower() in small for level in LEVELS) and SMALL_LEVEL.search(head) is not None)
        or ((b"kafka." in head or b"state.change" in head) and ANY_CLASS.search(head) is not None)
        or NO_LEVEL.search(head) is not None
        or NUMBERS.search(head) is not None
    )


def is_mostly_broker_lines(head: bytes) -> bool:
    """Whether most of the lines at the start of a file are those of a broker or controller."""
    head = head[:DECIDES]
    begun = sum(bool(line) and not line[:1].isspace() for line in head.split(b"\n"))
    layout, _ = detect(head)
    return layout is not None and 3 * len(layout.find(head).starts) >= begun and has_broker_lines(head)


def is_broker_log(path: Path) -> bool:
    """Whether the start of a file holds lines that a broker or controller wrote."""
    return _may_hold_lines(_head(path, is_as_written=True)) and has_broker_lines(_head(path))


def has_broker_lines(head: bytes) -> bool:
    """The same of the start of a file."""
    if _has_broker_line(head):
        return True
    layout, _ = detect(head)
    if layout is None or layout is KAFKA:
        return False
    starts = layout.find(head).starts.tolist()
    records = (layout.split(head[a:b]) for a, b in pairwise([*starts, len(head)]))
    return any(record and _is_of_broker(record) for record in records)


def _is_of_broker(record: Head) -> bool:
    """Whether a class of brokers logged this; of a class without its package the sentence tells."""
    if record.logger is None or "." in record.logger:
        return record.logger is not None and BROKER_CLASS.fullmatch(record.logger.encode()) is not None
    shape = shape_of(record.message, record, 0)
    return shape.template is not None and BROKER_CLASS.fullmatch((shape.logger or "").encode()) is not None


def _has_broker_line(head: bytes) -> bool:
    """Whether a line of Kafka's own layout is by a class that only brokers and controllers have."""
    return any(
        BEGIN.match(head, head.rfind(b"\n", 0, end.start()) + 1, end.start()) for end in END.finditer(head)
    )


def broker_id_of_logs(
    logs: Sequence[BrokerLog], log_dirs: Sequence[LogDir], broker_folders: Mapping[Path, int]
) -> dict[Path, int | None]:
    """Folder of broker logs to the id of the broker that wrote them."""
    by_folder: dict[Path, list[BrokerLog]] = {}
    for log in logs:
        by_folder.setdefault(log.path.parent, []).append(log)
    return {
        folder: _broker_id(folder, folder_logs, log_dirs, broker_folders)
        for folder, folder_logs in by_folder.items()
    }


def _broker_id(
    folder: Path, logs: list[BrokerLog], log_dirs: Sequence[LogDir], broker_folders: Mapping[Path, int]
) -> int | None:
    for above in (folder, *folder.parents):
        if above in broker_folders:
            return broker_folders[above]
    root = logs[0].root.path
    own_ids = _ids_in_lines(logs)
    if len(own_ids) > 1:
        return None  # several brokers write to one folder
    broker_id = next(iter(own_ids)) if own_ids else _id_of_named_folder(folder, root, log_dirs)
    if broker_id is None:
        broker_id = _id_in_properties(folder)
    if broker_id is None:
        broker_id = _id_of_log_dirs_near(folder, root, log_dirs)
    return broker_id


def _id_of_named_folder(folder: Path, root: Path, log_dirs: Sequence[LogDir]) -> int | None:
    """The id that the name of a folder above tells; where its log directories have one id, theirs."""
    named = named_broker_id(folder, root)
    for above in (folder, *folder.parents):
        if named is not None and broker_id_of(above.name, above.parent.name) == named:
            ids = {log_dir.broker_id for log_dir in log_dirs if log_dir.path.is_relative_to(above)}
            return ids.pop() if len(ids) == 1 else named
    return named


def _id_in_properties(folder: Path) -> int | None:
    """The id in a `server.properties` in the folder of the logs or beside it."""
    for path in (folder / "server.properties", folder.parent / "server.properties"):
        ids = set(SETTING.findall(_head(path)))
        if len(ids) == 1:
            return int(ids.pop())
    return None


def own_broker_id(log: BrokerLog) -> int | None:
    """The broker id that the lines of one log name: a folder of captured output may hold logs of several brokers."""
    own_ids = _ids_in_lines([log])
    return own_ids.pop() if len(own_ids) == 1 else None


def _ids_in_lines(logs: Iterable[BrokerLog]) -> set[int]:
    """Ids of the writers that the first lines of the logs name, two of several; else those of printed configurations."""
    return ids_in_heads(_head(log.path) for log in logs)


def ids_in_heads(heads: Iterable[bytes]) -> set[int]:
    """The same of the starts of logs."""
    named: set[int] = set()
    configured: set[int] = set()
    for head in heads:
        layout, _ = (KAFKA, None) if _has_broker_line(head) else detect(head)
        head = head if layout is None else layout.bare(head)
        named.update(writers_named(head))
        if len(named) > 1:
            break
        if not named:
            configured.update(map(int, OWN_BROKER_ID.findall(head)))
    return named or configured


def _id_of_log_dirs_near(folder: Path, root: Path, log_dirs: Sequence[LogDir]) -> int | None:
    """The one broker whose log directories lie below the nearest folder above that has any."""
    for above in (folder, *folder.parents):
        ids = {log_dir.broker_id for log_dir in log_dirs if log_dir.path.is_relative_to(above)}
        if ids or above == root:
            return ids.pop() if len(ids) == 1 else None
    return None


def _head(path: Path, *, is_as_written: bool = False) -> bytes:
    """The start of a file; of an export the lines taken out of it, unless `is_as_written`."""
    chunks = chunks_of(
        str(path), lambda reason: None, size=LOOKED_AT, follow=False, is_as_written=is_as_written
    )
    try:
        return next(chunks, b"")
    except (OSError, ValueError):
        return b""
