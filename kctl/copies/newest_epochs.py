"""The newest leader epochs in the evidence: in znodes, and in the epoch files of copies.

If brokers' logs end earlier, their history is incomplete; the files beside them may show it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from kctl.copies.moments import Znodes, znodes_of
from kctl.evidence.model import FoundEvidence
from kctl.evidence.replica_copies import Copy, copies_of
from kctl.model import TopicPartition


class NamedEpoch(NamedTuple):
    """A leader epoch, and the file that names it."""

    epoch: int
    file: str


def newest_epochs(evidence: FoundEvidence) -> dict[TopicPartition, NamedEpoch]:
    """The newest epoch of each partition at the last moment; earlier moments may be of an earlier topic."""
    newest: dict[TopicPartition, NamedEpoch] = {}
    last = evidence.moments[-1] if evidence.moments else None

    def name(partition: TopicPartition, epoch: int, file: str) -> None:
        if partition not in newest or epoch > newest[partition].epoch:
            newest[partition] = NamedEpoch(epoch, file)

    znodes = znodes_of(evidence, lambda error: None).get(last)
    for partition, state in (znodes.states if znodes else {}).items():
        name(partition, state.leader_epoch, state.file or "")
    for partition, by_moment in copies_of(evidence).items():
        for copy, epoch in epochs_of(by_moment.get(last, {}).values(), znodes):
            name(partition, epoch, f"{copy.place.file}/leader-epoch-checkpoint")
    return newest


def epochs_of(copies: Iterable[Copy], znodes: Znodes | None) -> Iterator[tuple[Copy, int]]:
    """The newest epoch of each copy that has epochs, without copies of another topic than the znodes name."""
    for copy in copies:
        present = znodes.topic_ids.get(copy.replica.topic) if znodes else None
        if copy.recorded_epochs and (present is None or copy.replica.topic_id in (None, present)):
            yield copy, max(epoch for epoch, _ in copy.recorded_epochs)
