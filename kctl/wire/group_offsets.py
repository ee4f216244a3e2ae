"""Offsets of groups that no consumer can read on from: outside the log, or pending in a transaction.

A broker answers a fetch from outside the log with OFFSET_OUT_OF_RANGE, and the consumer goes on by
`auto.offset.reset`. An offset that a transaction wrote counts from its end; until then brokers answer
UNSTABLE_OFFSET_COMMIT, and a consumer that starts waits.

Source: KIP-447 (offsets of a transaction); clients/.../consumer/internals/ConsumerCoordinator.java @ 3.9.0
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from formats.words import counted
from kctl.cluster.state import ClusterState
from kctl.errors import KctlError
from kctl.findings import Finding, Place, Severity
from kctl.findings.groups import GROUP_OFFSET_BELOW_START, GROUP_OFFSET_BEYOND_END, GROUP_OFFSET_PENDING
from kctl.internal_topics.transactions import Transaction, partition_for
from kctl.model import TopicPartition
from kctl.times import iso
from kctl.wire.adapter import Wire
from kctl.wire.groups import (
    BEYOND_END,
    BY_GROUP,
    BY_NAME,
    CLASSIC,
    OFFSETS,
    SHARE,
    ConsumerGroup,
    ListedGroup,
    PartitionLag,
    lags_of,
    list_groups,
    offsets_partitions,
    watermarks,
)
from kctl.wire.protocol.messages import OffsetFetchRequest
from kctl.wire.replicas.fetching import EARLIEST, LATEST
from kctl.wire.rights import failure
from kctl.wire.transactions import OpenInPartition, with_coordinators

STABLE = 7  # the first version of OffsetFetch that tells of pending offsets
UNSTABLE_OFFSET_COMMIT = 88
GIVES_UP = 60_000
"""Milliseconds after which a consumer gives up: the default of `default.api.timeout.ms`."""


class PendingOffsets(NamedTuple):
    """The partitions of a group with pending offsets, and what holds them open.

    `why` says why the transactions are not known; `partitions` is None where brokers do not tell.
    """

    partitions: tuple[TopicPartition, ...] | None
    transactions: tuple[OpenInPartition, ...] = ()
    log_partition: int | None = None
    why: str | None = None


def pending_offsets(wire: Wire, group: ConsumerGroup) -> PendingOffsets:
    """The offsets of a group that wait for the end of a transaction. Raises KctlError."""
    version = wire.version_of(OffsetFetchRequest) or 0
    if group.type == SHARE or version < STABLE:
        return PendingOffsets(() if group.type == SHARE else None)
    if version >= BY_GROUP:
        asked = OffsetFetchRequest.OffsetFetchRequestGroup(group_id=group.group, topics=None)
        request = OffsetFetchRequest(
            groups=[asked], require_stable=True, min_version=BY_GROUP, max_version=BY_NAME
        )
        (answer,) = wire.send(request, group.coordinator).groups
    else:
        request = OffsetFetchRequest(
            group_id=group.group, topics=None, require_stable=True, min_version=STABLE, max_version=STABLE
        )
        answer = wire.send(request, group.coordinator)
    if answer.error_code:
        raise failure(wire, f"offsets of group {group.group}", "OffsetFetch", answer.error_code, group.group)
    partitions = tuple(
        sorted(
            TopicPartition(str(topic.name), int(p.partition_index))
            for topic in answer.topics
            for p in topic.partitions
            if p.error_code == UNSTABLE_OFFSET_COMMIT
        )
    )
    if not partitions:
        return PendingOffsets(())
    number: int | None = None
    try:
        number = partition_for(group.group, len(offsets_partitions(wire)) or 1)
        held = with_coordinators(wire, TopicPartition(OFFSETS, number))
        return PendingOffsets(partitions, tuple(held), number)
    except KctlError as error:
        return PendingOffsets(partitions, (), number, error.message)


def offset_findings(
    group: str, lags: Sequence[PartitionLag], pending: PendingOffsets | None, now: int
) -> Iterator[Finding]:
    """A finding for each partition whose offset is outside the log, and for each with a pending one."""
    for lag in lags:
        if lag.out_of_range is None or lag.committed is None:
            continue
        place = Place(topic=lag.partition.topic, partition=lag.partition.partition)
        kind = GROUP_OFFSET_BEYOND_END if lag.out_of_range == BEYOND_END else GROUP_OFFSET_BELOW_START
        yield kind.at(
            place,
            group=group,
            partition=lag.partition,
            offset=lag.committed.offset,
            edge=lag.log_end_offset if lag.out_of_range == BEYOND_END else lag.log_start_offset,
            gone=lag.records_gone,
        )
    for tp in (pending.partitions if pending else None) or ():
        assert pending
        yield GROUP_OFFSET_PENDING.at(
            Place(topic=tp.topic, partition=tp.partition),
            severity=None if _is_long(pending, now) else Severity.INFO,
            group=group,
            partition=tp,
            held=_held_by(pending, now),
        )


def _is_long(pending: PendingOffsets, now: int) -> bool:
    """Whether a transaction is open for so long that a consumer that starts gives up, or will not end at all."""
    return pending.why is not None or any(
        held.hangs or held.hangs is None or now - _since(held) > GIVES_UP for held in pending.transactions
    )


def _since(held: OpenInPartition) -> int:
    started = held.coordinator.start_timestamp if held.coordinator else None
    return held.transaction.last_timestamp if started is None else started


def troubled_offsets(wire: Wire, state: ClusterState, now: int) -> tuple[list[Finding], list[str]]:
    """Findings about the offsets of all groups, pending ones only if they wait for long; and what could not be read."""
    groups, failures = list_groups(wire)
    unread = [failure.message for failure in failures]
    listed = [group for group in groups if group.type != SHARE]
    offsets, pending, refused = _of_all(wire, listed)
    unread += refused
    partitions = sorted({tp for of_group in offsets.values() for tp in of_group})
    ends = watermarks(wire, partitions, LATEST, state)
    starts = watermarks(wire, partitions, EARLIEST, state)
    findings: list[Finding] = []
    for group in listed:
        suspects = [
            tp
            for tp, at in offsets.get(group.group, {}).items()
            if at > ends.get(tp, at) or at < starts.get(tp, at)
        ]
        if not suspects and group.group not in pending:
            continue
        described = ConsumerGroup(
            group=group.group,
            coordinator=group.coordinator,
            type=group.type or CLASSIC,
            state=group.state or "",
            protocol_type=None,
            protocol=None,
            members=(),
        )
        try:
            lags = lags_of(wire, described, state) if suspects else []
            waiting = pending_offsets(wire, described) if group.group in pending else None
        except KctlError as error:
            unread.append(error.message)
            continue
        findings += (
            finding for finding in offset_findings(group.group, lags, waiting, now) if finding.is_wrong
        )
    return findings, unread


def _of_all(
    wire: Wire, groups: Sequence[ListedGroup]
) -> tuple[dict[str, dict[TopicPartition, int]], set[str], list[str]]:
    """The offsets of groups, the groups with pending ones, and what could not be read; a request to each coordinator."""
    version = wire.version_of(OffsetFetchRequest) or 0
    requests: list[tuple[int, OffsetFetchRequest]] = []
    asked: list[list[str]] = []
    if version >= BY_GROUP:
        by_node: dict[int, list[str]] = {}
        for group in groups:
            by_node.setdefault(group.coordinator, []).append(group.group)
        kind = OffsetFetchRequest.OffsetFetchRequestGroup
        for node, names in by_node.items():
            of_node = [kind(group_id=name, topics=None) for name in names]
            requests.append(
                (
                    node,
                    OffsetFetchRequest(
                        groups=of_node, require_stable=True, min_version=BY_GROUP, max_version=BY_NAME
                    ),
                )
            )
            asked.append(names)
    else:
        for group in groups:
            stable = {"require_stable": True} if version >= STABLE else {}
            request = OffsetFetchRequest(group_id=group.group, topics=None, max_version=STABLE, **stable)
            requests.append((group.coordinator, request))
            asked.append([group.group])
    offsets: dict[str, dict[TopicPartition, int]] = {}
    pending: set[str] = set()
    unread: list[str] = []
    for names, answer in zip(asked, wire.send_all(requests), strict=True):
        if isinstance(answer, KctlError):
            unread.append(answer.message)
            continue
        for name, of_group in zip(names, answer.groups if version >= BY_GROUP else [answer], strict=True):
            if of_group.error_code:
                place = f"offsets of group {name}"
                unread.append(failure(wire, place, "OffsetFetch", of_group.error_code, name).message)
                continue
            for topic in of_group.topics:
                for p in topic.partitions:
                    tp = TopicPartition(str(topic.name), int(p.partition_index))
                    if p.error_code == UNSTABLE_OFFSET_COMMIT:
                        pending.add(name)
                    elif not p.error_code and p.committed_offset >= 0:
                        offsets.setdefault(name, {})[tp] = int(p.committed_offset)
    return offsets, pending, unread


def _held_by(pending: PendingOffsets, now: int) -> str:
    """Which transaction it is, since when, and how it ends."""
    if pending.why is not None:
        return f"which is not known: {pending.why}"
    log = f"{OFFSETS}-{pending.log_partition}"
    if not pending.transactions:
        return f"it ended while kctl looked ({log} has none open)"
    held = "; or ".join(_words(held, log, now) for held in pending.transactions)
    if len(pending.transactions) == 1:
        return held
    return f"one of {counted(len(pending.transactions), 'transaction')} that are open in {log}: {held}"


def _words(held: OpenInPartition, log: str, now: int) -> str:
    known, opened = held.coordinator, held.transaction
    abort = f"`kctl transactions abort {log} --start-offset {opened.start_offset}`"
    producer = f"producer {opened.producer_id} epoch {opened.producer_epoch}"
    if known is None:
        since = iso(opened.last_timestamp)
        if held.hangs:
            return f"{producer}, last write at {since}; no coordinator will end it ({held.why}): {abort}"
        return f"{producer}, last write at {since}; {held.why}"
    since = "" if known.start_timestamp is None else f" since {iso(known.start_timestamp)}"
    name = f"transactional id {known.transactional_id} ({producer}), {known.state}{since}"
    if held.hangs:
        return f"{name}; no coordinator will end it ({held.why}): {abort}"
    return f"{name}; {_end_of(known, now)}, or end it with {abort} --force"


def _end_of(known: Transaction, now: int) -> str:
    """When a transaction ends by itself."""
    how = "it ends with its producer"
    if known.start_timestamp is None or known.timeout_ms <= 0:
        return how
    end = known.start_timestamp + known.timeout_ms
    if end <= now:
        return f"{how}; its timeout was over at {iso(end)}, and the coordinator aborts it"
    return f"{how}, at the latest at {iso(end)} (transaction.timeout.ms {known.timeout_ms})"
