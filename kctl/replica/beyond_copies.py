"""What was committed beyond every copy: checkpoints and offsets of consumers that the present lineage does not reach.

A copy may be shorter than its own high watermark: it lost its tail, or cut it, before the checkpoint was written
anew. The files of a running broker are copied one after the other, so that such a mark says something only where
the order of copying cannot explain it: an older moment, or a broker that was down.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from kctl.replica.commitment import ExternalOffset
from kctl.replica.copies import CHECKPOINTS, Moment
from kctl.replica.drops import Scene
from kctl.replica.lost_parts import HeldCopy
from kctl.replica.moments import Znodes


def gone_by(one: ExternalOffset, scene: Scene) -> int | None:
    """From which offset on the present lineage lacks what was committed up to `one`; None where it says nothing."""
    present = scene.present
    assert present.lineage is not None
    if one.strength == "weak":
        return None
    start = None if one.epoch is None else present.starts_after(one.epoch)
    if start is None and one.offset > present.log_end_offset and one.is_of_before:
        start = present.log_end_offset
    return None if start is None else max(start, present.lineage.log_start_offset)


def marks_beyond(scene: Scene, znodes: Mapping[Moment, Znodes]) -> Iterator[ExternalOffset]:
    """High watermarks above the end of their own copies, as far as they were written before the present copy was."""
    for held in scene.held:
        mark = held.copy.checkpoint("high_watermark")
        if mark is None or mark <= held.lineage.log_end_offset or held.copy is scene.present.copy:
            continue
        if _says_something(held, mark, scene, znodes):
            epoch = held.lineage.last_epoch if held.lineage.epochs else None
            text = f"{CHECKPOINTS['high_watermark']} of {held.copy.who} says {mark}"
            yield ExternalOffset(
                "high_watermark_checkpoint",
                "good",
                mark,
                epoch,
                text,
                held.copy.place.file,
                is_of_before=True,
            )


def _says_something(held: HeldCopy, mark: int, scene: Scene, znodes: Mapping[Moment, Znodes]) -> bool:
    present, moment = scene.present, held.copy.moment
    of_then = znodes.get(moment)
    if moment == present.moment:
        was_down = of_then is not None and held.copy.broker_id not in of_then.live
        return was_down and mark > present.log_end_offset
    if not _is_of_older_leadership(scene, moment):
        return False
    if mark > present.log_end_offset:
        return True
    following = _next_epoch(scene, held.lineage.last_epoch) if held.lineage.epochs else None
    # Then the mark is of the leadership before: what came later had not begun.
    return following is not None and scene.epoch_then[moment] < following


def _is_of_older_leadership(scene: Scene, moment: Moment) -> bool:
    """Whether another leadership is present than at a moment: within one a log is not cut, its copy is incomplete."""
    then, current = scene.epoch_then.get(moment), scene.present.current_epoch
    if current is None and scene.present.state is not None:
        current = scene.present.state.leader_epoch
    return then is not None and current is not None and then < current


def _next_epoch(scene: Scene, epoch: int) -> int | None:
    return min((known for known, _ in scene.present.recorded if known > epoch), default=None)


def of_before(
    external: Iterable[ExternalOffset], scene: Scene, order: Iterable[Moment]
) -> Iterator[ExternalOffset]:
    """The offsets, each told whether it is from a moment before the present one, under another leadership."""
    earlier: set[Moment] = set()
    for moment in order:
        if moment == scene.present.moment:
            break
        if _is_of_older_leadership(scene, moment):
            earlier.add(moment)
    for one in external:
        yield one.at_moment(is_before=one.moment in earlier)
