"""Rebuilt files compared with the existing ones: equal, equivalent, or different.

Equal: byte for byte, zero padding and a last time entry that a running broker has yet to write left aside.
Equivalent: other bytes that the log bears out as well, such as the sparser index of a follower. What is
missing on one side only is said; it is different where Kafka would always have the file.
"""

from __future__ import annotations

import enum

from formats.errors import FormatError
from formats.log_dir.checkpoints import MalformedCheckpoint, parse_leader_epochs
from formats.log_dir.file_names import LEADER_EPOCHS, parse_segment_file
from formats.log_dir.index_files import (
    OFFSET_ENTRY_SIZE,
    TIME_ENTRY_SIZE,
    read_offset_index,
    read_time_index,
    read_transaction_index,
    used_size,
)
from formats.log_dir.producer_snapshot import read_snapshot
from formats.values import Struct, field
from kctl.checks.report import Report
from kctl.rebuilding.rebuild import RebuiltFiles

WIDTHS = {".index": OFFSET_ENTRY_SIZE, ".timeindex": TIME_ENTRY_SIZE}


class FileVerdict(enum.StrEnum):
    """How an existing file compares with the rebuilt one."""

    EQUAL = "equal"
    EQUIVALENT = "equivalent"
    DIFFERENT = "different"
    MISSING = "missing"


class Compared(Struct, frozen=True):
    """One file's verdict, how many entries differ, and the first that does."""

    verdict: FileVerdict
    differences: int = 0
    first_difference: str | None = None


class Existing(Struct):
    """The existing files, and the names of those in which verification found something wrong."""

    files: dict[str, bytes]
    wrong: set[str] = field(default_factory=set)

    @classmethod
    def wrong_in(cls, report: Report) -> set[str]:
        """Names of the files that a check of the folder complains about."""
        files = {f.place.file for f in report.all_findings() if f.is_wrong}
        return {name.rpartition("/")[2] for name in files if name}


def compare(name: str, rebuilt: bytes, existing: Existing) -> Compared:
    """The verdict on one file."""
    existing_data = existing.files.get(name)
    if existing_data is None:
        return Compared(FileVerdict.MISSING)
    if _is_equal(name, rebuilt, existing_data):
        return Compared(FileVerdict.EQUAL)
    ours, theirs = _entries(name, rebuilt), _entries(name, existing_data)
    differing = [(a, b) for a, b in zip(ours, theirs, strict=False) if a != b]
    count = len(differing) + abs(len(ours) - len(theirs))
    a, b = differing[0] if differing else (_beyond(ours, theirs), _beyond(theirs, ours))
    verdict = FileVerdict.DIFFERENT if name in existing.wrong else FileVerdict.EQUIVALENT
    return Compared(verdict, count, f"made {a or 'nothing'}, there {b or 'nothing'}" if count else None)


def _beyond(longer: list[str], shorter: list[str]) -> str | None:
    return longer[len(shorter)] if len(longer) > len(shorter) else None


def _is_equal(name: str, rebuilt: bytes, existing: bytes) -> bool:
    if rebuilt == existing:
        return True
    width = next((w for suffix, w in WIDTHS.items() if name.endswith(suffix)), None)
    if width is None:
        return False
    used = existing[: used_size(existing, width)]
    if rebuilt == used:
        return True
    # The last time entry is written when a segment is rolled or closed; an untrimmed file was not.
    return name.endswith(".timeindex") and len(used) < len(existing) and rebuilt[:-width] == used


def _entries(name: str, data: bytes) -> list[str]:
    """The entries of a file as text; the file as a whole where it cannot be read."""
    named = parse_segment_file(name)
    suffix = named.suffix if named else name
    try:
        match suffix:
            case ".index":
                used = data[: used_size(data, OFFSET_ENTRY_SIZE)]
                return [f"offset +{e.relative_offset} at {e.position}" for e in read_offset_index(used)]
            case ".timeindex":
                used = data[: used_size(data, TIME_ENTRY_SIZE)]
                return [f"{e.timestamp} at offset +{e.relative_offset}" for e in read_time_index(used)]
            case ".txnindex":
                return [str(tuple(e)) for e in read_transaction_index(data)]
            case ".snapshot":
                return [str(tuple(e)) for e in sorted(read_snapshot(data))]
            case _ if name == LEADER_EPOCHS:
                text = data.decode("utf-8", "replace")
                return [f"epoch {e.epoch} at {e.start_offset}" for e in parse_leader_epochs(text)]
    except (FormatError, MalformedCheckpoint) as error:
        return [str(error)]
    return []


def score(rebuilt: RebuiltFiles, existing: Existing) -> int:
    """How many of the rebuilt files equal the existing ones."""
    return sum(
        compare(name, data, existing).verdict is FileVerdict.EQUAL for name, data in rebuilt.files.items()
    )
