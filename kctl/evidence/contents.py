"""What a file of evidence is, and how much of its start is understood: a bounded number of its bytes is read.

Names come first, as for every command (`names.py`); a file of another name is known by what it holds.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

from formats import bounded_json
from formats.broker_logs.carrier_names import carrier_name
from formats.broker_logs.exports.carried import Document
from formats.broker_logs.exports.documents import written
from formats.broker_logs.layouts import COMPOSE, KAFKA, CarriedLayout, LineLayout, detect, export_of
from formats.broker_logs.line import writers_named
from formats.errors import FormatError
from formats.log.records import LogEntry, walk
from formats.log_dir import index_files
from formats.log_dir.file_names import (
    BOOTSTRAP_CHECKPOINT,
    CLEAN_SHUTDOWN,
    LEADER_EPOCHS,
    META_PROPERTIES,
    OFFSET_CHECKPOINTS,
    PARTITION_METADATA,
    QUORUM_STATE,
    parse_segment_file,
    segment_file_name,
)
from formats.log_dir.meta_properties import parse_properties
from formats.log_dir.state_files import parse_partition_metadata, parse_quorum_state
from kctl.evidence.broker_logs import has_broker_lines, is_mostly_broker_lines, may_be_export
from kctl.evidence.names import MAYBE_BROKER_LOG, MAYBE_EXPORT, REMOTE_FILE, ZNODES, broker_log_kind
from kctl.files import open_file
from kctl.text_logs.opening import chunks_of
from kctl.text_logs.shapes import is_of_kafka, shape_of

LOOKED_AT = 1 << 16
"""Bytes at the start of a file that are read."""
OF_A_LOG = 1 << 18
"""Of one that may be a log: as many as for `kctl.evidence.discover`."""
SAMPLES, SAMPLE = 16, 1 << 12
"""Of one that several processes print into so many pieces behind its start, and bytes of each."""
PACKED = (b"\x1f\x8b", b"\x28\xb5", b"\xfd7", codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
"""How files begin of which a piece is not read by itself."""


class Contents(NamedTuple):
    """What a file was recognised as."""

    group: str
    what: str
    looked_at: int = 0
    """Bytes that were read."""
    understood: int = 0
    """Of them."""
    lines: int | None = None
    lines_understood: int | None = None
    note: str | None = None
    log: bytes | None = None
    """Of a log the lines at its start, as its layout reads them."""
    brokers: frozenset[int] = frozenset()
    """Of a log that pods or containers printed into the brokers that its lines and their names tell."""

    @property
    def is_odd(self) -> bool:
        """Whether less than nine tenths of what was read was understood."""
        return 10 * self.understood < 9 * self.looked_at


# What else lies beside brokers' files, by name; no command reads it.
BESIDE = (
    (re.compile(r"(?:.*-)?gc(?:[._-].*)?\.log(?:[._-].*)?"), "a garbage collector's log"),
    (re.compile(r"hs_err_pid\d+\.log"), "the report of a JVM's crash"),
    (re.compile(r".*\.hprof(?:\.gz)?"), "a dump of a JVM's memory"),
    (re.compile(r".*\.jfr"), "a recording of a JVM"),
    (re.compile(r".*\.(?:tar|tgz|zip|7z|tar\.\w+)"), "an archive, not unpacked"),
    (re.compile(r".*\.pcap(?:ng)?"), "packets of a network"),
)
SETTINGS = re.compile(r".*\.(?:properties|ya?ml|conf|cfg|env|ini|toml)|.*\.properties\.\w+", re.IGNORECASE)
SUFFIXES = {
    ".log": "segment", ".checkpoint": "metadata-snapshot", ".index": "offset-index", ".timeindex": "time-index",
    ".txnindex": "transaction-index", ".snapshot": "producer-snapshot",
}  # fmt: skip
WIDTHS = {
    "offset-index": index_files.OFFSET_ENTRY_SIZE,
    "time-index": index_files.TIME_ENTRY_SIZE,
    "transaction-index": index_files.ABORTED_SIZE,
}


def contents_of(path: Path, size: int, *, is_in_tier: bool = False, is_looked_at: bool = True) -> Contents:
    """What a file is; OSError where it cannot be read. Not `is_looked_at`: by its name alone."""
    name = path.name
    if is_in_tier or REMOTE_FILE.fullmatch(name):
        return Contents("tier", "tier-object")
    for kind in (_of_log_dir(name), _of_name(name)):
        if kind is None:
            continue
        group, what, judge = kind
        if not is_looked_at or not size:
            return Contents(group, what)
        if what == "broker-log":
            return _log(path, size) or _unknown(path, size)
        contents = judge(Contents(group, what), path, size)
        is_zero = contents.is_odd and not _bytes(path).strip(b"\0")
        return contents._replace(note="zeros") if is_zero else contents
    return _unknown(path, size) if is_looked_at else Contents("other", "unknown")


Judge = Callable[[Contents, Path, int], Contents]


def _of_log_dir(name: str) -> tuple[str, str, Judge] | None:
    """What a file with one of the names of a log directory is."""
    segment = parse_segment_file(name)
    if segment is not None:
        what = SUFFIXES[segment.suffix]
        judge = (
            _batches if what in ("segment", "metadata-snapshot") else _rows if what in WIDTHS else _snapshot
        )
        return "log-dirs", what, judge
    plain = segment_file_name(name)
    if plain == BOOTSTRAP_CHECKPOINT:
        return "log-dirs", "metadata-snapshot", _batches
    if plain == LEADER_EPOCHS or plain in OFFSET_CHECKPOINTS:
        return "log-dirs", "checkpoint", _checkpoint
    parsers: dict[str, tuple[str, Callable[[str], object]]] = {
        PARTITION_METADATA: ("partition-metadata", parse_partition_metadata),
        QUORUM_STATE: ("quorum-state", parse_quorum_state),
        META_PROPERTIES: ("meta-properties", parse_properties),
    }
    if name in parsers:
        what, parse = parsers[name]
        return "log-dirs", what, _text_read_by(parse)
    if name in (CLEAN_SHUTDOWN, ".lock", "metadata.state"):
        return "log-dirs", "marker", lambda contents, path, size: contents
    return None


def _of_name(name: str) -> tuple[str, str, Judge] | None:
    for expression, note in BESIDE:
        if expression.fullmatch(name):
            return "other", "beside", _noted(note)
    if broker_log_kind(name):
        return "logs", "broker-log", lambda contents, path, size: contents
    if ZNODES.fullmatch(name):
        return "znodes", "znodes", _znodes
    if SETTINGS.fullmatch(name):
        return "settings", "settings", _settings
    return None


def _noted(note: str) -> Judge:
    return lambda contents, path, size: contents._replace(note=note)


def _head(path: Path, size: int = LOOKED_AT) -> bytes:
    """The first bytes, unpacked and as UTF-8."""
    return next(chunks_of(str(path), lambda reason: None, size=size, is_as_written=True, follow=False), b"")[
        :size
    ]


# --- files of a log directory ---------------------------------------------------------------------------


def _batches(contents: Contents, path: Path, size: int) -> Contents:
    head = _bytes(path)
    sound = end = 0
    for item in walk(head):
        if isinstance(item, LogEntry):
            sound, end = sound + item.size_in_bytes, item.position + item.size_in_bytes
    cut = len(head) - end if len(head) == LOOKED_AT else 0
    if not sound and cut and len(head) > 16 and int.from_bytes(head[8:12], "big") > LOOKED_AT - 12:
        sound, cut = len(head), 0  # one large batch, of which the rest was not read
    note = (
        None
        if sound + cut >= len(head)
        else "no whole batch"
        if not sound
        else "bytes that are no whole batch"
    )
    return contents._replace(looked_at=len(head), understood=min(sound + cut, len(head)), note=note)


def _bytes(path: Path, size: int = LOOKED_AT) -> bytes:
    with open_file(path) as file:
        return file.read(size)


def _rows(contents: Contents, path: Path, size: int) -> Contents:
    head = _bytes(path)
    width = WIDTHS[contents.what]
    whole = head[: len(head) // width * width]
    used = whole[: index_files.used_size(whole, width)]
    # The first field of entries of both indexes is their key, unsigned where it counts; those of transactions are in no order.
    keys = [used[place : place + width - 4] for place in range(0, len(used), width)]
    wrong = None
    if size % width:
        wrong = f"its size is no multiple of {width}"
    elif contents.what != "transaction-index" and any(a > b for a, b in pairwise(keys)):
        wrong = "its entries do not rise"
    return contents._replace(looked_at=len(head), understood=0 if wrong else len(head), note=wrong)


def _snapshot(contents: Contents, path: Path, size: int) -> Contents:
    head = _bytes(path)
    is_sound = head[:2] == b"\0\1" and int.from_bytes(head[6:10], "big") * 46 + 10 == size
    note = None if is_sound else "not as long as its entries"
    return contents._replace(looked_at=len(head), understood=len(head) if is_sound else 0, note=note)


_ENTRY = re.compile(rb"\S* ?\d+ -?\d+\r?|\d+\r?")


def _checkpoint(contents: Contents, path: Path, size: int) -> Contents:
    return _lines(contents, _bytes(path), lambda line: _ENTRY.fullmatch(line) is not None)


def _text_read_by(parse: Callable[[str], object]) -> Judge:
    def judge(contents: Contents, path: Path, size: int) -> Contents:
        head = _bytes(path)
        try:
            parse(head.decode("latin-1"))
        except FormatError as error:
            return contents._replace(looked_at=len(head), note=error.what)
        return contents._replace(looked_at=len(head), understood=len(head))

    return judge


# --- texts ----------------------------------------------------------------------------------------------


def _lines(contents: Contents, head: bytes, is_known: Callable[[bytes], bool]) -> Contents:
    """The lines of a text that are known; one that breaks off does not count."""
    whole = head[: head.rfind(b"\n") + 1] if len(head) == LOOKED_AT and b"\n" in head else head
    lines = [line for line in whole.split(b"\n") if line.strip()]
    known = [line for line in lines if is_known(line)]
    understood = (
        len(head)
        if len(known) == len(lines)
        else len(head) * sum(map(len, known)) // max(sum(map(len, lines)), 1)
    )
    return contents._replace(
        looked_at=len(head), understood=understood, lines=len(lines), lines_understood=len(known)
    )


def _znodes(contents: Contents, path: Path, size: int) -> Contents:
    def is_znode(line: bytes) -> bool:
        try:
            value = bounded_json.loads(line)
        except (ValueError, RecursionError):
            return False
        return isinstance(value, dict) and isinstance(value.get("path"), str)

    return _lines(contents, _head(path), is_znode)


_SETTING = re.compile(rb"\s*(?:[#!;].*|[\w.$\"'\[\]/{} -]+(?:[=:].*)?|-.*|[}\]].*)")


def _settings(contents: Contents, path: Path, size: int) -> Contents:
    return _lines(contents, _head(path), lambda line: _SETTING.fullmatch(line.rstrip()) is not None)


def _log(path: Path, size: int) -> Contents | None:
    """A log of a broker, and of how many lines at its start kctl knows what they say; None for what is none."""
    raw = _head(path, OF_A_LOG)
    if not raw:
        return None
    is_own, is_maybe = broker_log_kind(path.name) is not None, _may_be_log(path.name)
    if not (is_own or is_maybe or may_be_export(raw)):
        return None
    export = export_of(raw)
    head = raw
    if export is not None:
        head = b"".join(written(export, iter([raw]), OF_A_LOG))
    if not (is_own or (has_broker_lines(head) if is_maybe else is_mostly_broker_lines(head))):
        return None
    part = head[: head.rfind(b"\n", 0, LOOKED_AT) + 1] or head
    layout, _ = detect(part)
    if layout is None:
        return Contents("logs", "broker-log", len(raw), note="no line of a known layout", lines=_count(part), lines_understood=0)  # fmt: skip
    places = layout.find(part).starts.tolist()
    understood = lines = read = 0
    for start, end in pairwise([*places, len(part)]):
        record = part[start:end]
        split = layout.split(record)
        shape = shape_of(record, split, 0)
        lines += (count := _count(record))
        if split and (shape.template is not None or not is_of_kafka(shape.logger, shape.level)):
            understood, read = understood + count, read + end - start
    before = part.count(b"\n", 0, places[0]) if places else 0
    share = read / max(len(part), 1)
    note = None if export is None else export.name
    if export is None and layout is not KAFKA:
        note = f"the layout {layout.name}"
    looked_at = _read_of(path, size, len(raw))
    return Contents(
        "logs", "broker-log", looked_at, int(looked_at * share), lines + before, understood, note, head,
        _printed_by(path, size, layout, head, export),
    )  # fmt: skip


def _read_of(path: Path, size: int, count: int) -> int:
    """Bytes of a file of which so many of UTF-8 came, where most characters have one."""
    is_utf_16 = _bytes(path, 2) in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
    return min(size, 2 * count + 2) if is_utf_16 else count


def _printed_by(
    path: Path, size: int, layout: LineLayout, head: bytes, export: Document | None
) -> frozenset[int]:
    """The brokers whose pods or containers printed into a log, by its start and by samples behind that."""
    if not isinstance(layout, CarriedLayout) or layout.origin is None:
        return frozenset()
    pieces = [head]
    with open_file(path) as file:
        is_plain = file.read(2) not in PACKED
        for number in range(1, SAMPLES + 1 if is_plain and size > OF_A_LOG else 0):
            file.seek(OF_A_LOG + (size - OF_A_LOG - SAMPLE) * number // SAMPLES)
            piece = file.read(SAMPLE).partition(b"\n")[2]
            piece = piece[: piece.rfind(b"\n") + 1]
            pieces.append(b"".join(written(export, iter([piece]), SAMPLE)) if export else piece)
    brokers: set[int] = set()
    for piece in pieces:
        names = (name.decode("utf-8", "replace") for name in layout.origins(piece) if name)
        carriers = (carrier_name(name, is_service=layout.has(COMPOSE)) for name in names)
        brokers |= {carrier.number for carrier in carriers if carrier and carrier.is_id}
        brokers |= writers_named(layout.bare(piece))
    return frozenset(brokers)


def _count(text: bytes) -> int:
    return text.count(b"\n") + (not text.endswith(b"\n"))


def _may_be_log(name: str) -> bool:
    return MAYBE_BROKER_LOG.fullmatch(name) is not None


def _unknown(path: Path, size: int) -> Contents:
    """A file without a name that tells what it is."""
    if not size:
        return Contents("other", "empty")
    name = path.name
    if broker_log_kind(name) is None and (_may_be_log(name) or MAYBE_EXPORT.fullmatch(name)):
        log = _log(path, size)
        if log is not None:
            return log
    head = _head(path)
    if _is_plan(head):
        return Contents("other", "plan", len(head), len(head), note="a plan for `reassign execute`")
    binary = head.translate(None, _TEXT)
    if 20 * len(binary) < len(head):
        looked_at = _read_of(path, size, len(head))
        return Contents("other", "text", looked_at, lines=head.count(b"\n"), lines_understood=0)
    note = "zeros" if not head.strip(b"\0") else None
    if note is None and isinstance(next(walk(_bytes(path)), None), LogEntry):
        return Contents("other", "segment", len(head), len(head), note="batches; name the file to read it")  # fmt: skip
    return Contents("other", "binary", len(head), note=note)


_TEXT = bytes([9, 10, 12, 13, 27, *range(32, 127), *range(128, 256)])


_PLAN = re.compile(rb'\{\s*(?:"version"\s*:\s*1\s*,\s*)?"(?:partitions|topics)"\s*:\s*\[\s*\{\s*"topic"\s*:')


def _is_plan(head: bytes) -> bool:
    """Whether a text has a plan of Kafka's tool for reassignments in it, or the topics for one."""
    return _PLAN.search(head) is not None
