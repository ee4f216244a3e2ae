"""Leader epochs, producer snapshot and aborted transactions of a remote segment compared with its metadata and log."""

from __future__ import annotations

from collections.abc import Mapping

from formats.errors import FormatError
from formats.log_dir.checkpoints import assigned_epochs, parse_leader_epochs
from formats.log_dir.index_files import ABORTED_SIZE, read_transaction_index
from formats.log_dir.producer_snapshot import read_snapshot
from formats.messages.remote_log_metadata import SegmentMetadata
from kctl.replication.epochs import Entries, entries_in_range
from kctl.tier.audit.transactions import SegmentTransactions


def _shown(entries: Entries) -> str:
    return ", ".join(f"{epoch}→{start}" for epoch, start in entries[:8]) or "none"


def check_leader_epochs(data: bytes, segment: SegmentMetadata) -> tuple[Entries | None, str | None]:
    """The epochs stored with a segment, and why they differ from those of its metadata (None: they do not).

    The object has all entries from the log's first up to the segment's end; cut to the segment they equal the metadata.
    """
    try:
        entries = parse_leader_epochs(data.decode("utf-8", "replace"))
        assigned = assigned_epochs(entries)
    except (FormatError, ValueError) as error:
        return None, str(error)
    if assigned != entries:
        return None, "they do not rise"
    stored = tuple((entry.epoch, entry.start_offset) for entry in entries)
    if stored and stored[-1][1] > segment.end_offset:
        return None, f"epoch {stored[-1][0]} starts at {stored[-1][1]}, beyond the segment"
    own = entries_in_range(stored, segment.start_offset, segment.end_offset + 1)
    if own != segment.segment_leader_epochs:
        return (
            None,
            f"within the segment they say {_shown(own)}, the metadata say {_shown(segment.segment_leader_epochs)}",
        )
    return stored, None


def check_producer_snapshot(
    data: bytes, segment: SegmentMetadata, last_offsets: Mapping[int, int] | None
) -> tuple[int | None, list[str]]:
    """The number of producers, and what is wrong with them. A snapshot has no expired producers.

    `last_offsets` are those of the producers in the segment's log; None if the log is not whole.
    """
    try:
        producers = read_snapshot(data)
    except FormatError as error:
        return None, [str(error)]
    wrong = []
    for producer in producers:
        end = f"producer {producer.producer_id} ends at offset {producer.last_offset}"
        if producer.last_offset > segment.end_offset:
            wrong.append(f"{end}, beyond the segment")
        elif last_offsets is None or producer.last_offset < 0:
            continue
        elif producer.last_offset != (last := last_offsets.get(producer.producer_id, producer.last_offset)):
            wrong.append(f"{end}, in the log at {last}")
        elif producer.last_offset >= segment.start_offset and producer.producer_id not in last_offsets:
            wrong.append(f"{end}, in the log it has no batch")
    return len(producers), wrong[:8]


def check_transactions(data: bytes, segment: SegmentMetadata, transactions: SegmentTransactions) -> list[str]:
    """What is wrong with an index of aborted transactions."""
    wrong = []
    if len(data) % ABORTED_SIZE:
        wrong.append(f"{len(data) % ABORTED_SIZE} bytes at its end are not an entry of {ABORTED_SIZE}")
    entries = read_transaction_index(data)
    for number, entry in enumerate(entries):
        if entry.version >> 8 != 0:
            wrong.append(f"entry {number} has version {entry.version}")
        elif not segment.start_offset <= entry.last_offset <= segment.end_offset:
            wrong.append(f"entry {number} ends at offset {entry.last_offset}, not in the segment")
        elif transactions.aborts.get(entry.last_offset) != entry.producer_id:
            wrong.append(
                f"entry {number} is of producer {entry.producer_id} up to offset {entry.last_offset}, where no marker"
                " aborts it"
            )
        elif transactions.begun.get(entry.last_offset, entry.first_offset) != entry.first_offset:
            wrong.append(
                f"entry {number} begins at {entry.first_offset}, its transaction at {transactions.begun[entry.last_offset]}"
            )
    listed = {entry.last_offset for entry in entries}
    wrong += [
        f"the transaction aborted at offset {offset} has no entry"
        for offset in transactions.begun
        if offset not in listed
    ]
    return wrong[:8]
