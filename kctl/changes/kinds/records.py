"""Records: deleted, produced again, and transactions that are ended."""

from collections.abc import Mapping
from typing import ClassVar

from formats.words import counted
from kctl.cluster.intent import Intent, IntentCodec
from kctl.model import Json, TopicPartition


class AbortTransaction(Intent, frozen=True, kw_only=True):
    """End a transaction that a partition's log holds open and its coordinator has forgotten. No inverse.

    `start_offset` is its first one; refused where it is not open any more.
    """

    kind: ClassVar[str] = "abort-transaction"
    does: ClassVar[str] = (
        "abort the transaction of producer {producer_id} in {topic}-{partition} at {start_offset}"
    )
    final: ClassVar[str] = "the marker stands in the log, and readers have gone past it"
    topic: str
    partition: int
    producer_id: int
    producer_epoch: int
    coordinator_epoch: int
    start_offset: int


class DeleteRecords(Intent, frozen=True, kw_only=True):
    """Delete the records of a topic below an offset of each partition. No inverse."""

    kind: ClassVar[str] = "delete-records"
    codecs: ClassVar[Mapping[str, IntentCodec]] = {
        "to_offsets": IntentCodec(
            lambda value: {str(partition): offset for partition, offset in sorted(value.items())},
            lambda value: {int(partition): int(offset) for partition, offset in value.items()},
        )
    }
    does: ClassVar[str] = "delete records of {to_offsets:partition} of topic {topic}"
    final: ClassVar[str] = "deleted records are gone"
    topic: str
    to_offsets: Mapping[int, int]  # by partition


class RecoverRecords(Intent, frozen=True, kw_only=True):
    """Produce lost records again that are kept in a file beside the journal. No inverse.

    What stands in the partition from `begin_offset` on is read first, and what is there already is not written.
    """

    kind: ClassVar[str] = "recover-records"
    final: ClassVar[str] = "consumers may have read the records, and a log gives none back"
    topic: str
    partition: int
    source_topic: str
    records: int
    file: str
    sha256: str
    begin_offset: int
    incident: str
    max_rate: int | None = None

    def __str__(self) -> str:
        source = TopicPartition(self.source_topic, self.partition)
        return f"produce {counted(self.records, 'lost record')} of {source} to {self.topic}-{self.partition}"

    def details_written(self) -> Mapping[str, Json]:
        """The offsets that the records got."""
        from kctl.changes.kept_records import noted_offsets

        offsets = noted_offsets(self.file)
        return (
            {"recovered": {f"{self.topic}-{self.partition}": [list(span) for span in offsets]}}
            if offsets
            else {}
        )

    def forget(self) -> None:
        """Remove the records, which stand in the partition now."""
        from kctl.changes.kept_records import forget

        forget(self.file)
