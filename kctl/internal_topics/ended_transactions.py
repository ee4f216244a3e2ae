"""Whether a producer snapshot tells that a transaction ended whose marker is in the log no more.

The cleaner up to 2.1 looks at one segment after the other: a marker whose records lie in an earlier one is taken for
one without records, and removed while they stay (`core:LogCleaner.scala`, cleanSegments @ 2.1.1; one state for all of
a cleaning since 2.2.0). The broker goes by its snapshots and holds nothing open.
"""

from pathlib import Path

from formats.errors import FormatError
from formats.producer_snapshot import ProducerEntry, read_snapshot
from kctl.internal_topics.transactions import OpenTransaction
from kctl.log.folder import FolderFile, read_folder


def is_ended(one: OpenTransaction, folder: Path, log_end: int) -> bool:
    """Whether the newest snapshot behind the transaction's records that can be read has it open no more.

    One behind the log's end counts for nothing: a broker deletes it at its start.
    """
    try:
        snapshots = read_folder(folder).snapshots
    except OSError:
        return False
    for file in reversed(snapshots):
        if one.last_offset < _offset(file) <= log_end:
            try:
                producers = read_snapshot(file.path.read_bytes())
            except (OSError, FormatError):
                continue
            return not any(_holds(producer, one) for producer in producers)
    return False


def _offset(file: FolderFile) -> int:
    return file.named.base_offset if file.named else -1


def _holds(producer: ProducerEntry, one: OpenTransaction) -> bool:
    """A producer that is missing was forgotten, which none is while its transaction is open (isExpired)."""
    return (
        producer.producer_id == one.producer_id and 0 <= producer.current_txn_first_offset <= one.last_offset
    )
