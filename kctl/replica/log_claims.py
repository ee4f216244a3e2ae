"""What brokers' own words say was cut away, also where no copy of it was ever taken.

From 1.0 on `Truncating to offset` is printed only when something was cut; before, only where the log's end was
named as well. A cut to the own high watermark is followed by fetching the same records again, so it is no loss
by itself. A claim stands only if the present lineage begins an epoch where the cut says that it must.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from kctl.model import TopicPartition
from kctl.replica.leaders import Leaders
from kctl.replica.present import Present
from kctl.replica.testimony import Note, Testimony

NOTED = ("leader", "follower", "loaded", "created", "asked_to_cut", "cut", "fell_back", "reset", "shrank")


@dataclass(frozen=True, slots=True)
class Claim:
    """A broker cut its log to `from_offset`; its end before, None where no line says. `notes` prove it."""

    broker_id: int
    from_offset: int
    to_offset: int | None
    time_ms: int
    epoch: int | None
    notes: tuple[Note, ...]
    high_watermark: int | None = None
    """The broker's own as it stopped leading, if it was alive all the time: then an upper bound of what it committed."""
    reached: int | None = None
    """Where the log ended while the broker still led: it may have gone on from there."""
    epoch_start: int | None = None
    """Where the broker itself said that its epoch starts."""


@dataclass
class _Replica:
    """What is known of one broker's log while its lines are read."""

    end: int | None = None
    reached: int | None = None
    notes: list[Note] = field(default_factory=list)
    led_at: int | None = None
    began: tuple[int, int] | None = None
    """The epoch that it led last and where it starts, where a line says both."""
    high_watermark: int | None = None
    fell_back_to: int | None = None
    fell_back: bool = False


def find_claims(
    partition: TopicPartition, testimony: Testimony, leaders: Leaders, present: Present
) -> list[Claim]:
    """The cuts that took away what the present lineage does not hold."""
    replicas: dict[int, _Replica] = {}
    claims: list[Claim] = []
    since = testimony.began_at(partition)
    for note in testimony.of(partition, *NOTED):
        if note.time_ms < since:
            continue
        replica = replicas.setdefault(note.broker_id, _Replica())
        claims += _take(replica, note, testimony, leaders)
    return list(_that_stand(claims, present))


def _take(replica: _Replica, note: Note, testimony: Testimony, leaders: Leaders) -> Iterator[Claim]:
    if note.what == "leader":
        replica.led_at, replica.end, replica.notes = note.time_ms, None, []
        replica.high_watermark = replica.reached = None
        if note.leader_epoch is not None and note.offset is not None:
            replica.began = note.leader_epoch, note.offset
    elif note.what in ("loaded", "follower", "shrank"):
        _learn(replica, note, testimony)
    elif note.what == "created":
        replica.end = 0
    elif note.what == "fell_back":
        replica.fell_back, replica.fell_back_to = True, note.high_watermark
    elif note.what == "asked_to_cut":
        if replica.end is not None and note.offset is not None:
            replica.end = min(replica.end, note.offset)
    elif note.offset is not None:
        by_own_mark = note.what == "cut" and replica.fell_back
        known = replica.end if note.what == "cut" else note.log_end_offset
        if not by_own_mark and (known is None or known > note.offset):
            yield _claim(replica, note, known, leaders)
        replica.end, replica.notes, replica.fell_back = note.offset, [], False
        replica.reached = None


def _learn(replica: _Replica, note: Note, testimony: Testimony) -> None:
    if note.what == "loaded":
        if replica.led_at is not None:  # it led until its end, whenever that was
            replica.high_watermark = None
        replica.led_at = None  # a process that starts leads nothing
        replica.fell_back = False
    elif note.high_watermark is not None and replica.led_at is not None:
        alive = not testimony.started_between(note.broker_id, replica.led_at, note.time_ms)
        replica.high_watermark = note.high_watermark if alive else None
        if note.what == "follower":
            replica.led_at = None
    if note.what == "shrank":  # a leader goes on writing
        replica.end, replica.reached = None, note.log_end_offset
    else:
        replica.end, replica.reached = note.log_end_offset, None
    replica.notes.append(note)


def _claim(replica: _Replica, note: Note, known: int | None, leaders: Leaders) -> Claim:
    assert note.offset is not None
    led = [
        one.leader_epoch
        for one in leaders.known
        if one.leader == note.broker_id and one.from_ms is not None and one.from_ms < note.time_ms
    ]
    epoch = max(led, default=None)
    notes = (*replica.notes[-3:], note)
    return Claim(
        note.broker_id,
        note.offset,
        known,
        note.time_ms,
        epoch,
        notes,
        replica.high_watermark,
        replica.reached,
        replica.began[1] if replica.began and replica.began[0] == epoch else None,
    )


def _that_stand(claims: list[Claim], present: Present) -> Iterator[Claim]:
    """The claims that the present lineage bears out, each cut down to what it lacks."""
    assert present.lineage is not None
    starts = {start for _, start in present.recorded}
    epochs = {epoch for epoch, _ in present.recorded}
    for claim in claims:
        start: int | None = None
        if not present.recorded:
            start = claim.from_offset if claim.notes[-1].what == "reset" else None
        elif claim.epoch is not None:
            following = present.starts_after(claim.epoch)
            if following is not None and claim.epoch_start is not None and claim.epoch not in epochs:
                following = min(following, claim.epoch_start)  # nothing of that epoch is present
            start = None if following is None else max(claim.from_offset, following)
        elif claim.from_offset in starts:
            start = claim.from_offset
        if start is None:
            continue
        start = max(start, present.lineage.log_start_offset)
        if claim.to_offset is None or claim.to_offset > start:
            yield replace(claim, from_offset=start)
