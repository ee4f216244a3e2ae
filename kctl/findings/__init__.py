"""Everything a check can say: one table of findings, like a compiler's diagnostics.

A `FindingType` is a row of the table: code, severity, the sentence shown, what it means, where it comes
from and what to do. The rows stand in this folder, one file a subject; codes are stable and never renamed.
A check says `BATCH_CRC_MISMATCH.at(place, stored=..., computed=...)`; nothing else makes words for people.
"""

import enum
from collections.abc import Iterator
from importlib import import_module

from formats.values import Struct, replace
from kctl.rows.common import FINDING


class Severity(enum.StrEnum):
    """How bad a finding is. Info alone leaves the exit status at 0."""

    ERROR = "error"
    WARNING = "warning"
    INFO = "info"


class Place(Struct, frozen=True):
    """Where a finding is; what is not known stays None. Sent to executors: not `kw_only`, which msgspec alone unpickles."""

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


NOWHERE = Place()


class FindingType(Struct, frozen=True):
    """One row of the table. `sentence` is a template over the details that a check gives."""

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
        return Finding(self.code, severity or self.severity, self.sentence.format(**details), place)


def error(code: str, sentence: str, meaning: str, cause: str, action: str) -> FindingType:
    """A row of the table; `warning` and `info` likewise."""
    return FindingType(code, Severity.ERROR, sentence, meaning, cause, action)


def warning(code: str, sentence: str, meaning: str, cause: str, action: str) -> FindingType:
    return FindingType(code, Severity.WARNING, sentence, meaning, cause, action)


def info(code: str, sentence: str, meaning: str, cause: str, action: str) -> FindingType:
    return FindingType(code, Severity.INFO, sentence, meaning, cause, action)


class Finding(Struct, frozen=True):
    """One thing that a check has to say."""

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
SUBJECTS = (
    "segments",
    "evidence",
    "internal_topics",
    "state_log",
    "remote",
    "replica",
    "indexes",
    "logs",
    "epochs",
    "small_files",
    "directories",
    "snapshots",
    "journal",
    "live",
    "migration",
)


def all_findings() -> Iterator[FindingType]:
    """Every row of the table, by subject."""
    for subject in SUBJECTS:
        module = import_module(f"kctl.findings.{subject}")
        yield from (value for value in vars(module).values() if isinstance(value, FindingType))
