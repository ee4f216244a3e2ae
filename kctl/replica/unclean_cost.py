"""Unclean elections whose cost nobody can tell: nothing of those who were in the ISR before is in the evidence.

What an unclean election drops is on the disks of the ISR until they follow the new leader, and in their logs from
then on. Without either the records are gone unseen, if there were any.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from formats.znodes import NO_LEADER
from kctl.findings import Finding, Place
from kctl.findings import replica as say
from kctl.replica.copies import Moment
from kctl.replica.drops import Scene, is_unclean
from kctl.replica.leaders import Led
from kctl.replica.moments import Znodes


def costs_unknown(
    scene: Scene, znodes: Mapping[Moment, Znodes], dropped_by: Iterable[int | None]
) -> Iterator[Finding]:
    """A finding for each unclean election of which no witness is here. `dropped_by` are epochs with known losses."""
    known = set(dropped_by)
    for led in scene.leaders.known:
        if led.leader is None or led.leader < 0:
            continue
        if led.leader_epoch in known or not _is_surely_unclean(scene, led):
            continue
        isr, *_ = scene.leaders.isr_before(led.leader_epoch)
        if not isr or any(_is_witness(scene, znodes, led, broker_id) for broker_id in isr):
            continue
        start = next((at for epoch, at in scene.present.recorded if epoch >= led.leader_epoch), None)
        topic, partition = scene.partition
        place = Place(topic=topic, partition=partition, broker_id=led.leader, base_offset=start)
        yield say.UNCLEAN_COST_UNKNOWN.at(
            place,
            partition=scene.partition,
            leader=led.leader,
            epoch=led.leader_epoch,
            start="an offset that nobody names" if start is None else f"offset {start}",
            isr=", ".join(map(str, isr)),
        )


def _is_surely_unclean(scene: Scene, led: Led) -> bool:
    """Whether logs say so, or the state before, without a leader, has an ISR that the new one is not in."""
    before = next(iter(scene.leaders.before(led.leader_epoch)), None)
    decided = (
        before is not None and before.leader == NO_LEADER and before.leader_epoch == led.leader_epoch - 1
    )
    is_told = led.how == "unclean" or (decided and before is not None and bool(before.isr))
    return is_told and is_unclean(scene.leaders, led)


def _is_witness(scene: Scene, znodes: Mapping[Moment, Znodes], led: Led, broker_id: int) -> bool:
    """Whether a member of the ISR before shows what it had: by its logs since, or by a copy from before it followed."""
    testimony = scene.testimony
    current = scene.present.current_epoch
    if current is not None and current < led.leader_epoch:
        return False  # every copy is from before the election
    since = led.from_ms
    kinds = ("loaded", "follower", "cut", "reset", "asked_to_cut")
    notes = testimony.of(scene.partition, *kinds, broker_id=broker_id)
    if since is not None and any(note.time_ms >= since for note in notes):
        return True
    for held in scene.copies_of(broker_id):
        state = znodes[held.copy.moment].state(scene.partition) if held.copy.moment in znodes else None
        is_after = state is not None and state.leader_epoch >= led.leader_epoch
        was_down = state is not None and broker_id not in znodes[held.copy.moment].live
        has_followed = bool(held.lineage.epochs) and held.lineage.last_epoch >= led.leader_epoch
        if (is_after or was_down) and not has_followed:
            return True
    return False
