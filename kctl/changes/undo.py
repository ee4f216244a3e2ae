"""The plan that takes a change back: the inverse of each stage that may stand, the last one first.

Compare-and-set against what the change left: an inverse names what it expects to find, so that a value set by
somebody else since is never overwritten. Where a stage has no inverse the whole undo is refused, with the
reason, before anything is written.
"""

from functools import cache, partial

from kctl.changes.apply import ChangeRun, note_what_takes_back, read_for, split_begun, was_written
from kctl.changes.entry import Entry
from kctl.changes.plan import Plan, plan_of
from kctl.changes.same_topics import made_as, refuse_other_topics
from kctl.changes.unclean_allowed import guarded
from kctl.cluster.intent import Intent
from kctl.errors import Refused


def plan_undo(entry: Entry, run: ChangeRun, *, accepted: bool = False) -> Plan:
    """The plan of taking back what stands of a change; empty where nothing of it was written.

    Where it restores a value that lets a partition elect an unclean leader at once, it needs an option: `accepted`.
    """
    if entry.undone_by:
        raise Refused(
            f"change {entry.id} was undone by {entry.undone_by} already",
            f"`kctl journal show {entry.undone_by}` shows that change",
        )
    split_begun(entry, run)
    intents: list[Intent] = []
    for index in reversed(range(len(entry.stages))):
        stage = entry.stages[index]
        is_unknown = stage.state == "writing" and not stage.is_begun
        if not stage.may_be_written or (is_unknown and not _may_stand(entry, index, run)):
            continue
        if is_unknown or stage.undo_refused:  # what spoke against it may be gone
            note_what_takes_back(entry, stage, run, is_over=True)
        if stage.undo_refused:
            raise Refused(
                stage.undo_refused,
                f"`kctl journal show {entry.id}` shows the former values; restore them by hand where needed",
            )
        intents += [intent for intent in stage.undo if not intent.is_nothing]
    title = f"undo {entry.id}: {entry.title}"
    if not intents:
        return Plan(title=title, stages=())
    refuse_other_topics(entry, intents, run.cluster)
    warnings: list[str] = []
    earlier = [part for stage in entry.stages for part in stage.intent.parts]
    for intent in intents:
        state = read_for(intent, run)
        ends = cache(partial(run.cluster.log_ends, state))
        for part in intent.parts:
            part.refuse_changed(state, entry.id, earlier, partial(made_as, entry))
            part.refuse_dead(state)
        for part in sorted(intent.parts, key=str):
            warnings += part.lost_with(state, ends)
    state, details = read_for(intents[0], run), {"undoes": entry.id}
    plan = plan_of(intents, run.cluster, state, title=title, warnings=warnings, details=details)
    return guarded(run.cluster, intents, plan, accepted=accepted, kafka_version=run.kafka_version)


def _may_stand(entry: Entry, index: int, run: ChangeRun) -> bool:
    """Whether a stage that was cut off has left anything: over Kafka's own protocol also a part of it."""
    return was_written(entry, index, run) or run.cluster.is_begun(entry.stages[index].writes)
