"""Checkpoint files: a version line, a count line, and that many entries, in UTF-8 text.

Read as Kafka 3.9 reads them: fields may be parted by any blanks, a leading blank is a field of its own,
an empty file is an empty list, lines may end in any of the three ways. A field that is no number is not an
IOException there but an unwrapped NumberFormatException, which does not mark the directory offline.

Source: server-common/src/main/java/org/apache/kafka/server/common/CheckpointFile.java,
storage/src/main/java/org/apache/kafka/storage/internals/checkpoint/{OffsetCheckpointFile,LeaderEpochCheckpointFile}.java @ 3.9.0-rc3
"""

import enum
import re
from collections.abc import Callable, Iterable
from typing import NamedTuple, TypeVar

from formats.errors import MalformedLine

VERSION = 0
INT32_MAX = (1 << 31) - 1
INT64_MAX = (1 << 63) - 1
NUMBER = re.compile(r"[+-]?\d+\Z")
# Java's \s, and its line ends; Python's are wider.
BLANKS = re.compile(r"[ \t\n\x0b\f\r]+")
LINE_END = re.compile(r"\r\n|\r|\n")


class Refusal(enum.StrEnum):
    """What a broker does with a checkpoint that it cannot read."""

    DIRECTORY_OFFLINE = "Kafka marks the log directory offline (IOException)"
    STARTUP_FAILS = (
        "Kafka fails on it with an exception that it does not handle (NumberFormatException from 3.1 on)"
    )
    INVALID_EPOCH = "Kafka fails to load the partition (IllegalArgumentException)"


class MalformedCheckpoint(MalformedLine):
    """A checkpoint that Kafka would not read, at which line, and what Kafka does then."""

    def __init__(self, what: str, line: int, refusal: Refusal = Refusal.DIRECTORY_OFFLINE) -> None:
        super().__init__(what, line)
        self.refusal = refusal

    def __reduce__(self) -> tuple[type, tuple[str, int, Refusal]]:
        return type(self), (self.what, self.position, self.refusal)


class OffsetEntry(NamedTuple):
    """A line of an offset checkpoint."""

    topic: str
    partition: int
    offset: int


class EpochEntry(NamedTuple):
    """A line of `leader-epoch-checkpoint`: the epoch, and the first offset written in it."""

    epoch: int
    start_offset: int


Entry = TypeVar("Entry", OffsetEntry, EpochEntry)


def parse_offset_checkpoint(text: str) -> list[OffsetEntry]:
    """The entries in file order; of a duplicate key Kafka keeps the last. `MalformedCheckpoint` else."""
    return _parse(text, 3, _offset_entry)


def parse_leader_epochs(text: str) -> list[EpochEntry]:
    """The entries in file order, as they stand; see `assigned_epochs` for what a broker makes of them."""
    return _parse(text, 2, _epoch_entry)


def _parse(text: str, width: int, entry_of: Callable[[list[str], int], Entry]) -> list[Entry]:
    lines = LINE_END.split(text)
    if lines[-1] == "":
        lines.pop()
    if not lines:
        return []
    version = _header_number(lines[0], 1)
    if version != VERSION:
        raise MalformedCheckpoint(f"version {version} where {VERSION} is known", 1)
    if len(lines) == 1:
        return []
    count = _header_number(lines[1], 2)
    if count < 0:
        raise MalformedCheckpoint(f"count of {count} entries", 2, Refusal.STARTUP_FAILS)
    entries = []
    for number, line in enumerate(lines[2:], 3):
        fields = _fields(line)
        if len(fields) != width:
            raise MalformedCheckpoint(f"malformed line {line[:80]!r}", number)
        entries.append(entry_of(fields, number))
    if len(entries) != count:
        noun = "entry" if len(entries) == 1 else "entries"
        raise MalformedCheckpoint(f"{len(entries)} {noun} where line 2 promises {count}", len(entries) + 2)
    return entries


def _fields(line: str) -> list[str]:
    """The fields of a line as Java's split gives them: a leading empty one is kept, trailing ones are dropped."""
    if line.isascii() and line.isprintable() and line[:1] not in ("", " "):
        return line.split()  # nothing but spaces can part them: the same, and quicker
    fields = BLANKS.split(line)
    while len(fields) > 1 and not fields[-1]:
        fields.pop()
    return fields


def _header_number(line: str, number: int) -> int:
    value = _int(line, INT32_MAX)
    if value is None:
        raise MalformedCheckpoint(f"malformed line {line[:80]!r}", number)
    return value


def _number(text: str, most: int, line: int) -> int:
    value = _int(text, most)
    if value is None:
        bits = most.bit_length() + 1
        raise MalformedCheckpoint(
            f"{text[:40]!r} is not a number of {bits} bits", line, Refusal.STARTUP_FAILS
        )
    return value


def _int(text: str, most: int) -> int | None:
    """What Java's parseInt or parseLong makes of the text; None where it refuses."""
    if len(text) < 10 and text.isdecimal():
        return int(text)
    # The digits are counted first: int() of a long run of them is slow, and refused beyond 4,300.
    if not NUMBER.match(text) or len(text.lstrip("+-").lstrip("0")) > 19:
        return None
    value = int(text)
    return value if -most - 1 <= value <= most else None


def _offset_entry(fields: list[str], line: int) -> OffsetEntry:
    topic, partition, offset = fields
    if partition.isdecimal() and offset.isdecimal() and len(partition) < 10 and len(offset) < 19:
        return OffsetEntry(topic, int(partition), int(offset))
    return OffsetEntry(topic, _number(partition, INT32_MAX, line), _number(offset, INT64_MAX, line))


def _epoch_entry(fields: list[str], line: int) -> EpochEntry:
    return EpochEntry(_number(fields[0], INT32_MAX, line), _number(fields[1], INT64_MAX, line))


def format_checkpoint(entries: Iterable[OffsetEntry] | Iterable[EpochEntry]) -> str:
    """The text of a checkpoint file, in the order given."""
    lines = [" ".join(map(str, entry)) for entry in entries]
    return "\n".join([str(VERSION), str(len(lines)), *lines]) + "\n"


def assigned_epochs(entries: Iterable[EpochEntry]) -> list[EpochEntry]:
    """What a broker since 2.0 holds after assigning the lines in order: each may evict what contradicts it.

    `ValueError` for a negative epoch or offset. Source: assign and maybeTruncateNonMonotonicEntries in
    storage/src/main/java/org/apache/kafka/storage/internals/epoch/LeaderEpochFileCache.java @ 3.9.0-rc3
    """
    assigned: list[EpochEntry] = []
    for entry in entries:
        if entry.epoch < 0 or entry.start_offset < 0:
            raise ValueError(f"epoch {entry.epoch} starting at {entry.start_offset}")
        if assigned and entry.epoch == assigned[-1].epoch and entry.start_offset >= assigned[-1].start_offset:
            continue
        while assigned and (
            assigned[-1].epoch >= entry.epoch or assigned[-1].start_offset >= entry.start_offset
        ):
            assigned.pop()
        assigned.append(entry)
    return assigned
