"""Folders that a broker put aside: `-stray` where its metadata do not name the replica, `-delete` where it is to go.

They belong to the present topic of that name (a replica that was moved away, or a folder that lost its
`partition.metadata`) or to an earlier one. The topic id tells which; without one, the first batches of the log do.
"""

from __future__ import annotations

from collections.abc import Container
from typing import NamedTuple

from formats.log_dir.file_names import FolderKind
from kctl.copies.replica_log import ReplicaLog
from kctl.evidence.model import FoundEvidence
from kctl.evidence.replica_copies import NOBODY, Copy, place_of_replica
from kctl.model import TopicPartition
from kctl.scan.noted import ScanNotes

ASIDE = frozenset({FolderKind.STRAY, FolderKind.DELETE})


class HeldBatches(NamedTuple):
    """A log's sound batches, by base offset, leader epoch and CRC, each with its number of records; and the log's end."""

    batches: dict[tuple[int, int, int], int]
    end: int

    def lacking_in(self, other: HeldBatches) -> int:
        """How many records are in batches that another log has not."""
        return sum(records for batch, records in self.batches.items() if batch not in other.batches)


def held_batches(copy: Copy) -> HeldBatches:
    """The sound batches of a copy."""
    log = ReplicaLog(copy)
    held = {}
    for batches in log.batches():
        columns = (batches.first_offset, batches.leader_epoch, batches.crc, batches.records)
        for offset, epoch, crc, records in zip(*(column.tolist() for column in columns), strict=True):
            held[offset, epoch, crc] = max(records, 1)
    return HeldBatches(held, log.next_offset)


def aside_copies(
    evidence: FoundEvidence, topics: Container[str] = (), notes: ScanNotes | None = None
) -> dict[TopicPartition, list[Copy]]:
    """The folders aside of each partition, each of the last moment that has it; checkpoints say nothing about them."""
    latest: dict[tuple[int | None, str], Copy] = {}
    noted = notes.by_folder() if notes else {}
    order = {name: place for place, name in enumerate(evidence.moments)}
    replicas = (replica for replica in evidence.replicas if replica.kind in ASIDE)
    for replica in sorted(replicas, key=lambda replica: order.get(replica.moment or "", -1)):
        if topics and replica.topic not in topics:
            continue
        place = place_of_replica(evidence, replica)
        broker_id = NOBODY if replica.broker_id is None else replica.broker_id
        copy = Copy(replica, broker_id, place, noted=noted.get(replica.folder, {}))
        latest[replica.broker_id, replica.folder.name] = copy
    copies: dict[TopicPartition, list[Copy]] = {}
    for copy in latest.values():
        copies.setdefault(copy.partition, []).append(copy)
    return copies
