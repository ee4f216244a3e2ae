"""What all judges share: statements, and the copies of an incident's evidence."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

from tests.nemesis.truth import Batch, Stored, batches_of, checkpoint, log_of

Row = dict[str, Any]
UNBOUNDED = 1 << 62


class Statement(NamedTuple):
    """What was held against the truth."""

    is_right: bool
    text: str


def ranges(offsets: Iterable[int]) -> str:
    """Offsets as `[from, to)`, for people."""
    found: list[list[int]] = []
    for offset in sorted(offsets):
        if found and found[-1][1] == offset:
            found[-1][1] += 1
        else:
            found.append([offset, offset + 1])
    return " ".join(f"[{start}, {end})" for start, end in found)


def text(value: bytes | None) -> str:
    """A record's value as the story has it."""
    return (value or b"").decode("utf-8", "replace")


def partition_of(row: Row) -> str:
    """`TOPIC-N`."""
    return f"{row['topic']}-{row['partition']}"


class Copies:
    """The copies of an incident's evidence, each read once."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._read: dict[tuple[str, str, int], dict[int, Stored] | None] = {}
        self._batches: dict[tuple[str, str, int], list[Batch]] = {}

    def of(self, moment: str, partition: str, broker: int) -> dict[int, Stored] | None:
        """Records by offset; None where the broker has no such folder."""
        key = moment, partition, broker
        if key not in self._read:
            folder = self.path(moment, partition, broker)
            self._read[key] = log_of(folder) if folder else None
        return self._read[key]

    def batches(self, moment: str, partition: str, broker: int) -> list[Batch]:
        """The batches of a copy; none where there is no copy."""
        key = moment, partition, broker
        if key not in self._batches:
            folder = self.path(moment, partition, broker)
            self._batches[key] = batches_of(folder) if folder else []
        return self._batches[key]

    def path(self, moment: str, partition: str, broker: int) -> Path | None:
        """A copy's folder, in one of the log directories; None where there is none."""
        copied = self.folder / "moments" / moment / f"broker-{broker}"
        return next(iter(sorted(copied.glob(f"data*/{partition}"))), None)

    def log_start(self, moment: str, partition: str, broker: int) -> int:
        """Where a copy's log begins as its broker knew: files may hold more."""
        folder = self.path(moment, partition, broker)
        return max(0, (checkpoint(folder, "log-start-offset-checkpoint") or 0) if folder else 0)

    def first_epoch_start(self, moment: str, partition: str, broker: int) -> int:
        """Where the first epoch of a copy starts: brokers delete the epochs of what they delete from a tier."""
        folder = self.path(moment, partition, broker)
        assert folder
        lines = (folder / "leader-epoch-checkpoint").read_text().splitlines()
        return min((int(line.split()[1]) for line in lines[2:]), default=0)
