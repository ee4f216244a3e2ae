"""The table of findings that checks can report, like a compiler's diagnostics.

A `FindingType` is a row of the table: code, severity, the sentence shown, what it means, its cause and what to do.
This folder holds the rows, one file a subject; codes are stable and never renamed.
A check calls `BATCH_CRC_MISMATCH.at(place, stored=..., computed=...)`; nothing else makes words for people.
"""

import enum
import re
from collections.abc import Iterator
from importlib import import_module

from formats.values import Struct, replace
from formats.words import counted
from kctl.model import TopicPartition
from kctl.rows.common import FINDING


class Severity(enum.StrEnum):
    """How bad a finding is. Info alone leaves the exit status at 0."""

    ERROR = "error"
    WARNING = "warning"
    INFO = "info"


class Place(Struct, frozen=True):
    """Where a finding is; None is unknown. Sent to executors: not `kw_only`, which msgspec alone unpickles."""

    broker_id: int | None = None
    topic: str | None = None
    partition: int | None = None
    file: str | None = None
    line: int | None = None
    position: int | None = None
    size_in_bytes: int | None = None
    base_offset: int | None = None
    last_offset: int | None = None
    remote_log_segment_id: str | None = None
    evidence: str | None = None
    moment: str | None = None

    def in_partition(self, partition: TopicPartition) -> "Place":
        """The place with the partition that it is in."""
        return replace(self, topic=partition.topic, partition=partition.partition)


NOWHERE = Place()


class Counted(int):
    """A detail that sentences count: `{lines:line}` is `1 line` or `3 lines`, `{n:entry/entries}` likewise, and
    `{lines:was|were}` the word that goes with it."""

    def __format__(self, words: str) -> str:
        if "|" in words:
            one, several = words.split("|")
            return one if self == 1 else several
        if words[1:2].isalpha():
            noun, _, plural = words.partition("/")
            return counted(int(self), noun, plural)
        return int.__format__(self, words)


class FindingType(Struct, frozen=True):
    """One row of the table. `sentence` is a template over the details that a check gives, whole numbers as `Counted`."""

    code: str
    severity: Severity
    sentence: str
    meaning: str
    cause: str
    action: str

    def at(self, place: Place = NOWHERE, *, severity: Severity | None = None, **details: object) -> "Finding":
        """A finding of this type at a place; a `line` among the details is the place's as well."""
        line = details.get("line")
        if place.line is None and isinstance(line, int):
            place = replace(place, line=line)
        values = {name: Counted(value) if type(value) is int else value for name, value in details.items()}
        return Finding(self.code, severity or self.severity, self.sentence.format(**values), place)


# Sentences that several rows share.
SHARED = {
    "@rebuild-epochs": "Rebuild the file from the log with `kctl segment rebuild`; a broker does so only when it recovers.",
    "@rebuild-index": "Rebuild it with `kctl segment rebuild`; Kafka itself rebuilds a missing index at start-up.",
    "@client-bug": "Find the client that wrote it; other replicas hold the same bytes.",
    "@other-replica": "Take the range from another replica; `kctl replica compare` shows which copy is sound.",
    "@duplicates": "A broker that starts from it accepts duplicates as new records, or refuses valid producers.",
    "@delete-snapshot": "Delete it before the broker starts: Kafka then uses the next older one and replays the log.",
}


def error(table: str) -> FindingType:
    """A row of the table; `warning` and `info` likewise. Raises ValueError for one that lacks a line.

        remote-object-misnamed
        An object of the segment has another name than {expected}.
        Brokers build the name from the metadata and do not find the object.
        The object was renamed or copied by hand.
        Rename it to the expected name.

    A line each: code, sentence, meaning, cause, action, or the name of one in `SHARED`. What is indented more continues
    the line before.
    """
    return _row(Severity.ERROR, table)


def warning(table: str) -> FindingType:
    return _row(Severity.WARNING, table)


def info(table: str) -> FindingType:
    return _row(Severity.INFO, table)


def _row(severity: Severity, table: str) -> FindingType:
    lines = [line.strip() for line in re.sub(r"\n {5,}", " ", table).split("\n")]
    if len(lines) != 5:
        raise ValueError(
            f"finding {lines[0]} has {len(lines)} lines, not code, sentence, meaning, cause and action"
        )
    code, sentence, meaning, cause, action = (SHARED.get(line, line) for line in lines)
    return FindingType(code, severity, sentence, meaning, cause, action)


class Finding(Struct, frozen=True):
    """A finding of a check at a place."""

    code: str
    severity: Severity
    message: str
    place: Place = NOWHERE

    @property
    def is_wrong(self) -> bool:
        """Whether it makes the exit status 5."""
        return self.severity is not Severity.INFO

    def row(self) -> dict[str, object]:
        """The row of kind `finding`."""
        place = {name: getattr(self.place, name) for name in Place.__struct_fields__}
        return FINDING(code=self.code, severity=str(self.severity), message=self.message, **place)


# One file a subject; a new subject is one more name here.
SUBJECTS = [
    "segments",
    "evidence",
    "internal_topics",
    "groups",
    "state_log",
    "remote",
    "replica",
    "indexes",
    "logs",
    "epochs",
    "small_files",
    "directories",
    "identities",
    "snapshots",
    "journal",
    "live",
    "failures",
    "retention",
    "migration",
    "manifest",
    "access",
]


def all_findings() -> Iterator[FindingType]:
    """Every row of the table, by subject."""
    for subject in SUBJECTS:
        module = import_module(f"kctl.findings.{subject}")
        yield from (value for value in vars(module).values() if isinstance(value, FindingType))
