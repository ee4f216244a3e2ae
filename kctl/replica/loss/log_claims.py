"""Records that were cut away according to brokers' log lines, even if no copy of them was ever taken.

From 1.0 on `Truncating to offset` is printed only if something was cut; before, a cut is certain only if the log end
was logged as well. A cut to the own high watermark is followed by fetching the same records again, so that it is no
loss by itself. A claim counts only if the present lineage begins an epoch where the cut requires one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from formats.values import Struct, field, replace
from kctl.copies.leaders import Leaders
from kctl.copies.log_notes import LogNotes, Note
from kctl.model import TopicPartition
from kctl.replica.loss.causes import PROMPT_MS
from kctl.replica.loss.present_lineage import PresentLeader
from kctl.replication.epochs import next_epoch

NOTED = (
    "leader",
    "follower",
    "fetching",
    "loaded",
    "created",
    "asked_to_cut",
    "cut",
    "fell_back",
    "reset",
    "shrank",
)


class Claim(Struct, frozen=True):
    """A broker cut its log to `from_offset`; the end before is None if no line has it. `notes` prove it."""

    broker_id: int
    from_offset: int
    to_offset: int | None
    time_ms: int
    epoch: int | None
    notes: tuple[Note, ...]
    high_watermark: int | None = None
    """The broker's own when it stopped leading, if it ran throughout: an upper bound of what it committed."""
    reached: int | None = None
    """Where the log ended while the broker still led; it may have grown since."""
    led_epoch: int | None = None
    """The last epoch that the broker led; `epoch` may be a later one that it followed."""
    starts: tuple[tuple[int, int], ...] = ()
    """Epochs that the broker led last or fetched, with where its own log began to have their records."""


class _Replica(Struct):
    """The state of one broker's log as its lines are read."""

    end: int | None = None
    reached: int | None = None
    end_before_cut: int = 0
    """Where the log ended before it was cut to its own high watermark; it may not have fetched all of it again."""
    notes: list[Note] = field(default_factory=list)
    led_at: int | None = None
    began: tuple[int, int] | None = None
    """The epoch that it led last and its start offset, if a line has both."""
    high_watermark: int | None = None
    fell_back: bool = False
    role: tuple[int, int] | None = None
    """The leader epoch in which the broker last had a role, and when it was told."""
    grows_from: int | None = None
    """Where the log ended when it began to follow that epoch; None while it leads."""
    fetched_epochs: dict[int, int] = field(default_factory=dict)
    """The epochs that it followed while its log grew, with where it grew from.

    What it fetched there first may be of older epochs: a log that is made anew fetches all of them.
    """
    follows: Claim | None = None
    """What the log holds behind the start of the epoch that it follows, until a line cuts it."""


def find_claims(
    partition: TopicPartition, log_notes: LogNotes, leaders: Leaders, present: PresentLeader
) -> list[Claim]:
    """The cuts of records that the present lineage lacks."""
    replicas: dict[int, _Replica] = {}
    claims: list[Claim] = []
    led_from: dict[int, int] = {}
    since = log_notes.began_at(partition)
    for note in log_notes.of(partition, *NOTED):
        if note.time_ms < since:
            continue
        if note.what == "leader" and note.leader_epoch is not None and note.offset is not None:
            led_from[note.leader_epoch] = note.offset
        replica = replicas.setdefault(note.broker_id, _Replica())
        claims += _claims_of_note(replica, note, log_notes, leaders)
        _note_growth(replica, note)
        claims += _note_following(replica, note, log_notes, leaders, present)
    claims += [replica.follows for replica in replicas.values() if replica.follows is not None]
    return list(_confirmed_claims(claims, present, leaders, led_from))


def _note_growth(replica: _Replica, note: Note) -> None:
    """Learn which epochs the log has records of that it fetched."""
    reached = max(note.log_end_offset or 0, note.high_watermark or 0)
    if replica.role is not None and replica.grows_from is not None and reached > replica.grows_from:
        replica.fetched_epochs[replica.role[0]] = replica.grows_from
    left = note.offset if note.what in ("cut", "reset") else None
    if left is not None:
        kept = {epoch: start for epoch, start in replica.fetched_epochs.items() if start < left}
        replica.fetched_epochs = kept
    if note.what == "asked_to_cut":
        left = note.offset
    if replica.grows_from is not None and left is not None:
        replica.grows_from = min(replica.grows_from, left)


def _note_following(
    replica: _Replica, note: Note, log_notes: LogNotes, leaders: Leaders, present: PresentLeader
) -> Iterator[Claim]:
    """What a broker that begins to follow an epoch has at offsets where the present log has records of that epoch.

    In one process, roles come in the order of their epochs: what it had was written in earlier ones.
    """
    if note.what in ("cut", "asked_to_cut", "reset"):
        if note.what != "asked_to_cut" or replica.end == note.offset:
            replica.follows = None  # what the cut takes is claimed of it
        return
    if note.what not in ("leader", "follower", "fetching") or (epoch := note.leader_epoch) is None:
        return
    if replica.follows is not None and replica.role != (epoch, note.time_ms):
        yield replica.follows
        replica.follows = None
    before, replica.role = replica.role, (epoch, note.time_ms)
    if note.what == "leader":
        replica.grows_from = None
        return
    replica.grows_from = replica.reached if replica.end is None else replica.end
    is_first = (
        before is not None
        and before[0] < epoch
        and not log_notes.started_between(note.broker_id, before[1], note.time_ms)
    )
    start = dict(present.recorded).get(epoch)
    end = note.log_end_offset
    if is_first and start is not None and max(end or 0, replica.reached or 0) > start:
        claim = _claim(replica, note, end, leaders)
        # Where the epoch of its records is known, that tells from where on they are lost.
        replica.follows = replace(claim, from_offset=start if claim.epoch is None else 0)


def _claims_of_note(replica: _Replica, note: Note, log_notes: LogNotes, leaders: Leaders) -> Iterator[Claim]:
    if note.what == "leader":
        replica.led_at, replica.end, replica.notes = note.time_ms, None, []
        replica.high_watermark = replica.reached = None
        replica.end_before_cut, replica.fell_back = 0, False
        if note.leader_epoch is not None and note.offset is not None:
            replica.began = note.leader_epoch, note.offset
    elif note.what in ("loaded", "follower", "fetching", "shrank"):
        _note_log(replica, note, log_notes)
    elif note.what == "created":
        replica.end, replica.fell_back = 0, False
    elif note.what == "fell_back":
        replica.fell_back = True
    elif note.what == "asked_to_cut":
        if replica.end is not None and note.offset is not None:
            replica.end_before_cut = max(replica.end_before_cut, replica.end)
            replica.end = min(replica.end, note.offset)
    elif note.offset is not None:
        log_end = replica.end if note.what == "cut" else note.log_end_offset
        if note.what == "cut" and replica.fell_back:
            replica.end_before_cut = max(replica.end_before_cut, log_end or 0)
        else:
            log_end = None if log_end is None else max(log_end, replica.end_before_cut)
            if log_end is None or log_end > note.offset:
                yield _claim(replica, note, log_end, leaders)
            replica.end_before_cut, replica.notes = 0, []
        replica.end, replica.reached, replica.fell_back = note.offset, None, False


def _note_log(replica: _Replica, note: Note, log_notes: LogNotes) -> None:
    if note.what == "loaded":
        if replica.led_at is not None:  # it led until it ended, whenever that was
            replica.high_watermark = None
        replica.led_at = None  # a starting process leads nothing
        replica.fell_back = False
    elif note.high_watermark is not None and replica.led_at is not None:
        alive = not log_notes.started_between(note.broker_id, replica.led_at, note.time_ms)
        replica.high_watermark = note.high_watermark if alive else None
        if note.what in ("follower", "fetching"):
            replica.led_at = None
    if note.what == "shrank":  # a leader's log keeps growing
        replica.end, replica.reached = None, note.log_end_offset
    elif note.what == "fetching":  # a log reaches at least to its high watermark
        if replica.end is None:
            replica.reached = max(replica.reached or 0, note.high_watermark or 0)
    else:
        replica.end, replica.reached = note.log_end_offset, None
    replica.notes.append(note)


def _claim(replica: _Replica, note: Note, log_end: int | None, leaders: Leaders) -> Claim:
    led_epochs = [
        leadership.leader_epoch
        for leadership in leaders.known
        if leadership.leader == note.broker_id
        and leadership.from_ms is not None
        and leadership.from_ms < note.time_ms
    ]
    led_epoch = max(led_epochs, default=None)
    starts = {*replica.fetched_epochs.items(), *([replica.began] if replica.began else ())}
    epoch = max((*led_epochs, *replica.fetched_epochs), default=None)
    notes = (*(noted for noted in replica.notes[-3:] if noted is not note), note)
    return Claim(
        note.broker_id,
        note.offset or 0,
        log_end,
        note.time_ms,
        epoch,
        notes,
        replica.high_watermark,
        max(replica.reached or 0, replica.end_before_cut) or None,
        led_epoch,
        tuple(sorted((known, start) for known, start in starts if epoch is not None and known <= epoch)),
    )


def _confirmed_claims(
    claims: list[Claim], present: PresentLeader, leaders: Leaders, led_from: Mapping[int, int]
) -> Iterator[Claim]:
    """The claims that the present lineage confirms, each limited to what it lacks.

    `led_from` is where leaders said that their epochs begin.

    What a log held below a cut went as well where the leadership without it began after the cut.
    """
    assert present.lineage is not None
    starts = {start for _, start in present.recorded}
    epochs = {epoch for epoch, _ in present.recorded}
    for claim in claims:
        start: int | None = None
        if not present.recorded:
            start = claim.from_offset if claim.notes[-1].what == "reset" else None
        elif claim.epoch is not None:
            following = present.starts_after(claim.epoch)
            if following is not None and claim.epoch not in epochs:
                # Nothing of them is present. A log that is made anew fetches what was before them as well.
                gone = [
                    max(start, led_from[epoch])
                    for epoch, start in claim.starts
                    if epoch not in epochs and epoch in led_from
                ]
                following = min([following, *gone])
            start = None if following is None else max(claim.from_offset, following)
            dropped = leaders.of(next_epoch(present.recorded, claim.epoch))
            if dropped is not None and claim.time_ms < (dropped.from_ms or 0) - PROMPT_MS:
                start = following
        elif claim.from_offset in starts:
            start = claim.from_offset
        if start is None:
            continue
        start = max(start, present.lineage.log_start_offset)
        until = claim.to_offset
        if until is None:  # there was a record at the cut; above it only if a line says so
            until = max(claim.from_offset + 1, claim.reached or 0)
        if until > start:
            yield replace(claim, from_offset=start)
