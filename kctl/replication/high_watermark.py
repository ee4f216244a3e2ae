"""The high watermark: the first offset not known to be committed, on leader and follower.

It is exclusive: committed is [log start, high watermark). A follower's may decrease, which alone is never a loss.

It travels with FETCH. A follower learns the high watermark from the answer; the leader learns that data arrived only
from the offset of the next fetch. Up to 0.8.1.1 the broker updates the position first and then reads. Since 0.8.2 it
reads first, so that the answer carries the high watermark from before the update, unless there was nothing to send
and the request was parked. 2.4.0 to 2.5.1 answer a parked request at once when there is a newer high watermark
(KIP-392; removed in 2.6.0).

Source: core/src/main/scala/kafka/cluster/Partition.scala @ 0.8.2.1, 0.10.1.1, 0.10.2.1, 2.0.0, 2.0.1, 2.7.2, 3.7.1,
3.9.0-rc3; core/src/main/scala/kafka/server/ReplicaFetcherThread.scala @ 0.8.2.1, 2.8.2;
core/src/main/scala/kafka/log/Log.scala @ 2.8.2; core/src/main/scala/kafka/server/KafkaApis.scala @ 0.8.1.1;
core/src/main/scala/kafka/server/ReplicaManager.scala @ 0.8.2.1, 2.3.1, 2.5.1, 2.6.0;
core/src/main/scala/kafka/server/DelayedFetch.scala @ 0.8.2.1, 3.9.0-rc3
"""

from __future__ import annotations

import enum
from collections.abc import Collection, Iterable
from typing import NamedTuple


class Basis(enum.StrEnum):
    """Whose log end offsets the leader takes the minimum of."""

    ISR_ONLY = "isr_only"  # up to 0.10.1.1
    ISR_OR_CAUGHT_UP = "isr_or_caught_up"  # 0.10.2.0 and later
    ISR_OR_CAUGHT_UP_AND_MIN_ISR = "isr_or_caught_up_and_min_isr"  # 3.7.0 and later


class Admission(enum.StrEnum):
    """When a follower may join the ISR."""

    HW_ONLY = "hw_only"  # up to 2.0.0
    HW_AND_EPOCH_START = "hw_and_epoch_start"  # 2.0.1 and later


class FetchOrder(enum.StrEnum):
    """Whether a broker reads first or updates the follower's position first on a fetch."""

    UPDATE_THEN_READ = "update_then_read"  # 0.8.0 to 0.8.1.1
    READ_THEN_UPDATE = "read_then_update"  # 0.8.2.0 and later


class RemoteReplica(NamedTuple):
    """What a leader knows of a follower: its log end offset as of its last fetch (-1 before the first)."""

    broker_id: int
    log_end_offset: int
    last_caught_up_ms: int = 0


def leader_high_watermark(
    *,
    leader_log_end_offset: int,
    current: int,
    isr: Collection[int],
    replicas: Iterable[RemoteReplica],
    basis: Basis,
    now_ms: int = 0,
    replica_lag_time_max_ms: int = 30_000,
    pending_isr: Collection[int] = (),
    min_insync_replicas: int = 1,
) -> int:
    """The leader's high watermark after a change: the minimum over the basis, never lower than before.

    `pending_isr` are additions not yet confirmed by ZooKeeper, which count since 2.7 (the maximal ISR).
    `replicas` are the followers; `isr` contains the leader.
    """
    if basis is Basis.ISR_OR_CAUGHT_UP_AND_MIN_ISR and len(isr) < min_insync_replicas:
        return current
    members = {*isr, *pending_isr}
    ends = [leader_log_end_offset]
    for replica in replicas:
        caught_up = now_ms - replica.last_caught_up_ms <= replica_lag_time_max_ms
        if replica.broker_id in members or (basis is not Basis.ISR_ONLY and caught_up):
            ends.append(replica.log_end_offset)
    return max(current, min(ends))


def follower_high_watermark(*, log_end_offset: int, leader_high_watermark: int, log_start_offset: int) -> int:
    """A follower's high watermark after a fetch: min(own end, leader's), floored at the log start (2.4+)."""
    return max(min(log_end_offset, leader_high_watermark), log_start_offset)


def initial_high_watermark(
    *, checkpointed: int | None, log_end_offset: int, log_start_offset: int, floor_at_log_start: bool
) -> int:
    """The high watermark a broker starts with: its checkpoint (0 without one), capped by the log end.

    `floor_at_log_start` holds since 2.4, when the high watermark moved into the log object.
    """
    start = min(checkpointed or 0, log_end_offset)
    return max(start, log_start_offset) if floor_at_log_start else start


def may_join_isr(
    *,
    follower_log_end_offset: int,
    leader_high_watermark: int,
    leader_epoch_start_offset: int,
    rule: Admission,
) -> bool:
    if follower_log_end_offset < leader_high_watermark:
        return False
    return rule is Admission.HW_ONLY or follower_log_end_offset >= leader_epoch_start_offset
