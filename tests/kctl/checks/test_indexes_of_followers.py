"""Indexes as followers write them: many batches at once get one entry, and a clean stop counts bytes anew."""

from __future__ import annotations

from pathlib import Path
from struct import pack

import pytest

from formats.log.record_batch import Record, write_batch
from kctl.checks.replica import check_replica
from kctl.checks.report import CheckOptions, ReplicaTask
from kctl.findings import Place, Severity

INTERVAL = 4096
COUNT = 200  # batches of the first segment


def batch(offset: int) -> bytes:
    return write_batch([Record(offset, 1_000 + offset, b"k", b"v" * 40)], partition_leader_epoch=0)


SIZE = len(batch(0))


def rolled(folder: Path, indexed: list[int], timed: list[int]) -> list[str]:
    """Codes of what is found wrong in a rolled segment with entries of the offset and time index at these offsets."""
    partition = folder / "orders-0"
    partition.mkdir()
    (partition / f"{0:020d}.log").write_bytes(b"".join(map(batch, range(COUNT))))
    (partition / f"{0:020d}.index").write_bytes(b"".join(pack(">ii", o, o * SIZE) for o in indexed))
    (partition / f"{0:020d}.timeindex").write_bytes(b"".join(pack(">qi", 1_000 + o, o) for o in timed))
    (partition / f"{COUNT:020d}.log").write_bytes(batch(COUNT))
    (partition / "leader-epoch-checkpoint").write_text("0\n1\n0 0\n")
    report = check_replica(ReplicaTask(partition, Place(file=".")), CheckOptions())
    names = {f"{0:020d}.index", f"{0:020d}.timeindex"}
    found = [finding for file in report.files if file.place.file in names for finding in file.findings]
    return [finding.code for finding in found if finding.severity is not Severity.INFO]


STEP = INTERVAL // SIZE + 1
EVERY = list(range(STEP, COUNT, STEP))


@pytest.mark.parametrize(
    ("indexed", "timed", "codes"),
    [
        (EVERY, [*EVERY, COUNT - 1], []),
        # Up to 1.1 an entry names the first offset of what was appended, and the time entry beside it a later one;
        # then a clean stop, a fetch of all that was missed, and the roll.
        (EVERY[:1], [EVERY[0] + 1, EVERY[0] + STEP - 1, COUNT - 1], []),
        # Stops so near to each other that no entry falls due in between.
        (EVERY[:1], [EVERY[0], *range(EVERY[0] + STEP - 2, COUNT - 1, STEP - 2), COUNT - 1], []),
        (EVERY[:-4], [*EVERY, COUNT - 1], ["index-entries-missing"]),
    ],
)
def test_which_entries_are_missing(
    tmp_path: Path, indexed: list[int], timed: list[int], codes: list[str]
) -> None:
    assert rolled(tmp_path, indexed, timed) == codes
