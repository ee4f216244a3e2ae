"""What crosses the cuts of a log: parts are scanned alone, their edges are stitched per partition.

    edges = [scan.edge for scan in scans_of_a_partition_in_order]
    findings = stitched(edges, is_compacted=None)

Segments are cut off each other by Kafka, and large segments are cut once more into splits; a cut is a cut.
What depends on the batch before, or on the whole log (sequence gaps that compaction explains, transactions
that stay open), is said here and only here, so that no engine and no number of processes changes it.
"""

from dataclasses import dataclass, field
from typing import Any, NamedTuple

from kctl.checks.producers import Producers, Said, joined
from kctl.findings import Finding, Place, segments

# The first batch of a log has nobody before it: the two behind it say which of the first pair is wrong.
EPOCHS_AT_START = 3
# A leader epoch grows by one a decision of the controller: no two batches that follow each other are so far apart.
FAR = 1 << 16


class Epoch(NamedTuple):
    """The leader epoch of one batch."""

    leader_epoch: int
    is_new: bool  # of magic 2: older batches have none
    place: Place


@dataclass(slots=True)
class Edge:
    """How a part of a log begins and ends; nothing in it grows with the number of batches."""

    place: Place
    first: Place | None = None  # the first sound batch
    last_offset: int | None = None  # of the last sound batch
    first_epochs: list[Epoch] = field(
        default_factory=list
    )  # of the first sound batches, EPOCHS_AT_START of them
    last_epochs: list[Epoch] = field(default_factory=list)  # of the last two
    first_is_new: bool = (
        False  # whether the first sound batch is of magic 2: older ones hide their base offset
    )
    last_is_new: bool = False
    shows_compaction: bool = False
    producers: Producers = field(default_factory=dict)
    gaps: list[Finding] = field(default_factory=list)  # in offsets and sequences; normal in a compacted log


def stitched(edges: list[Edge], *, is_compacted: bool | None = None) -> list[Finding]:
    """What is wrong between the parts of one partition, given in the order of their offsets.

    `is_compacted` is what a topic's configuration says; None where nobody knows, then the batches tell.
    """
    found: list[Finding] = []
    gaps: list[Finding] = []
    known: Producers = {}
    before: Edge | None = None
    epochs: list[Epoch] = []
    start: list[Epoch] = []
    for edge in edges:
        if edge.first is not None:
            if before is not None:
                divide(_against_the_one_before(edge, before), found, gaps)
            before = edge
            found += _epochs_that_go_back([*epochs, *edge.first_epochs], known=len(epochs))
            start = [*start, *edge.first_epochs][:EPOCHS_AT_START]
            epochs = [*epochs, *edge.last_epochs][-2:]
        for producer_id, producer in edge.producers.items():
            whole = producer
            if producer_id in known:
                whole, between = joined(known[producer_id], producer)
                divide(between, found, gaps)
            known[producer_id] = whole
        gaps += edge.gaps
    if is_compacted is None and any(edge.shows_compaction for edge in edges):
        is_compacted = True
    if not is_compacted:
        found += gaps if is_compacted is False else [_unsure(gap) for gap in gaps]
    return found + _first_epochs(start) + _open_transactions(known)


def divide(said: list[Said], found: list[Finding], gaps: list[Finding]) -> None:
    """Put what compaction would explain aside."""
    for is_gap, finding in said:
        (gaps if is_gap else found).append(finding)


def _against_the_one_before(edge: Edge, before: Edge) -> list[Said]:
    found: list[Said] = []
    place, last_offset = edge.first, before.last_offset
    assert place is not None and place.base_offset is not None and last_offset is not None
    if place.base_offset <= last_offset:
        offsets: dict[str, Any] = {"base_offset": place.base_offset, "previous": last_offset}
        found.append((False, segments.OFFSETS_GO_BACK.at(place, **offsets)))
    elif place.base_offset > last_offset + 1 and edge.first_is_new and before.last_is_new:
        found.append((True, offset_gap(place, last_offset)))
    return found


def _epochs_that_go_back(epochs: list[Epoch], known: int) -> list[Finding]:
    """What is wrong with the epochs behind the first `known` ones, which were looked at before.

    A log's first pair is judged apart, when the third batch is known.
    """
    found = []
    for number in range(max(2, known), len(epochs)):
        one, before = epochs[number], epochs[number - 1]
        if one.is_new and one.leader_epoch < before.leader_epoch:
            found.append(_back(one, before, runs_ahead(epochs[number - 2].leader_epoch, one.leader_epoch)))
    return found


def _first_epochs(epochs: list[Epoch]) -> list[Finding]:
    """What is wrong with the first pair of a log: the third batch goes on after the one that is right."""
    if len(epochs) < 2 or not epochs[1].is_new or epochs[1].leader_epoch >= epochs[0].leader_epoch:
        return []
    first, second = epochs[0].leader_epoch, epochs[1].leader_epoch
    is_ahead = second <= epochs[2].leader_epoch < first if len(epochs) > 2 else first - max(second, 0) >= FAR
    return [_back(epochs[1], epochs[0], is_ahead)]


def _back(one: Epoch, before: Epoch, is_ahead: bool) -> Finding:
    kind = segments.EPOCH_RUNS_AHEAD if is_ahead else segments.EPOCH_GOES_BACK
    details: dict[str, Any] = {"leader_epoch": one.leader_epoch, "previous": before.leader_epoch}
    return kind.at((before if is_ahead else one).place, **details)


def runs_ahead(earlier: int, leader_epoch: int) -> bool:
    """Whether a batch between these two epochs, higher than both, is wrong itself and not the one behind it."""
    return 0 <= earlier <= leader_epoch


def offset_gap(place: Place, last_offset: int) -> Finding:
    """That offsets are missing between last_offset and the batch at place."""
    to_offset = (place.base_offset or 0) - 1
    return segments.OFFSET_GAP.at(place, from_offset=last_offset + 1, to_offset=to_offset)


def _unsure(gap: Finding) -> Finding:
    """The gap as information: the topic may be compacted."""
    message = f"{gap.message.rstrip('.')} (normal if the topic is compacted, which is unknown)."
    return Finding(gap.code, segments.INFO, message, gap.place)


def _open_transactions(producers: Producers) -> list[Finding]:
    found = []
    for producer_id, producer in sorted(producers.items()):
        since = producer.open_since
        if since is not None:
            details: dict[str, Any] = {
                "producer_epoch": since.producer_epoch,
                "first_offset": since.place.base_offset,
            }
            found.append(segments.OPEN_TRANSACTION.at(since.place, producer_id=producer_id, **details))
    return found
