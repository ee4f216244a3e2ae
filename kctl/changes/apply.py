"""Carry out a plan: write the journal, then for each stage send its writes and wait for the effect.

After a kill at any point, the entry has the stage under way; `resume` continues from there. The first stage
is written as it was shown; later ones are computed from the cluster's state at that time.
"""

import contextlib
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from formats.values import Struct, field, replace
from formats.words import counted
from kctl.changes.entry import WRITTEN, Entry, RecordedStage, recorded
from kctl.changes.faults import reach
from kctl.changes.intents import Several
from kctl.changes.journal import Journal
from kctl.changes.plan import Stage
from kctl.changes.same_topics import has_id, note_made, note_topics, refuse_other_topics
from kctl.changes.unclean_allowed import refuse_unaccepted
from kctl.changes.waiting import wait_for
from kctl.cluster.intent import Intent, Waited, Write
from kctl.cluster.interface import Cluster, Conflict
from kctl.cluster.state import ClusterState
from kctl.cluster.versions import KafkaVersion
from kctl.cluster.visibility import with_hidden_topics
from kctl.errors import KctlError, NotFinished, Refused, without_reassurance
from kctl.model import SILENT, Progress
from kctl.times import parse_iso

LATE = 5.0  # seconds
SHOWN = 12  # names of brokers or topics


class ChangeRun(Struct, frozen=True, kw_only=True):
    """The context of carrying out a plan. `until` is of `time.monotonic`."""

    cluster: Cluster
    journal: Journal
    wait: bool
    until: float
    kafka_version: KafkaVersion | None = None
    progress: Progress = SILENT
    note: Callable[[str], None] = lambda text: None
    is_resumed: bool = False
    cut_off: Mapping[int, tuple[Write, ...]] = field(default_factory=dict)
    """By the number of a stage, the writes that were on their way when an earlier run ended and were not to be seen."""
    credentials: Callable[[Any], tuple[Write, ...]] | None = None
    """The writes that give a user a password, which only this run of kctl knows."""


def apply(entry: Entry, run: ChangeRun) -> None:
    """Carry out the remaining stages of an entry.

    Raises Refused if nothing (more) could be written, NotFinished if it is written and not done in time.
    """
    reach("planned")
    if not run.is_resumed:
        note_topics(entry, run.cluster)
    run.journal.write(entry)
    reach("journalled")
    run = replace(run, until=run.until + _time_to_come(entry))
    for index in range(len(entry.stages)):
        _stage(entry, index, run)
    entry.outcome = None
    _note_progress(entry, run)
    reach("applied")
    if entry.undoes:
        undone = run.journal.find(entry.undoes)
        undone.undone_by = entry.id
        run.journal.write(undone)
    reach("closed")


def _time_to_come(entry: Entry) -> float:
    """The seconds that the change itself waits."""
    now = time.time()
    return max([0.0, *(stage.intent.seconds_to_come(now) for stage in entry.stages)])


def _stage(entry: Entry, index: int, run: ChangeRun) -> None:
    stage = entry.stages[index]
    if stage.state in ("planned", "refused"):
        _write(entry, index, run)
    if stage.state == "written" and (run.wait or index + 1 < len(entry.stages)):
        if not run.wait and index + 1 < len(entry.stages):
            raise _unfinished(
                entry, run, f"stage {index + 1} of {len(entry.stages)} is written, the rest is not"
            )
        waited = wait_for(
            stage.intent,
            run.cluster,
            until=run.until,
            progress=run.progress,
            title=_title(entry, index),
            note=run.note,
        )
        if waited.failed:
            raise _unfinished(entry, run, waited.failed, _ways_on(entry))
        if not waited.is_done:
            raise _unfinished(entry, run, _missing(waited))
        stage.state = "finished"
        _note_what_was_made(entry, index, run)
        _note_progress(entry, run)
        reach(f"finished:{index}")


def _write(entry: Entry, index: int, run: ChangeRun) -> None:
    stage = entry.stages[index]
    state_before = stage.state
    # Of an earlier stage, or of an earlier run that was cut off.
    has_written = any(other.may_be_written for other in entry.stages)
    try:
        _send(entry, index, run)
    except KctlError as error:
        if isinstance(
            error, NotFinished
        ):  # of a part that is written, or where that is unknown, `resume` finds out
            stage.is_begun = stage.is_begun or error.is_begun
        else:
            stage.state = "refused" if isinstance(error, Refused) or error.items else state_before
        is_part = has_written or isinstance(error, NotFinished)
        outcome = f"{_outcome(entry, error.message)}; {_ways_on(entry)}" if is_part else str(error)
        _note_outcome(entry, outcome, run)
        if not is_part:
            raise
        words = "not carried out in full" if stage.state == "writing" else "carried out in part"
        unfinished = NotFinished(f"{words}: {_outcome(entry, error.message)}", _ways_on(entry))
        unfinished.items = error.items
        raise unfinished from error
    reach(f"after-write:{index}")
    stage.state = "written"
    if stage.intent.places_to_look():
        _look_for_left_over(stage.intent, entry, index, run)
    _note_what_was_made(entry, index, run)
    _note_progress(entry, run)
    reach(f"written:{index}")
    _read_back(stage.intent, run)


def _send(entry: Entry, index: int, run: ChangeRun) -> None:
    """Send the writes of a stage; raises Conflict unless those of an earlier run have become visible since it began."""
    stage = entry.stages[index]
    try:
        if not stage.writes or index > 0 or stage.state == "refused":
            stage.writes = _writes_for(stage.intent, run)
        stage.state = "writing"
        run.journal.write(entry)
        reach(f"before-write:{index}")
        _commit(entry, index, run)
    except Conflict:
        late = run.cut_off.get(index, ())
        if not late or not run.cluster.is_written(late):
            raise
        stage.writes = late


def _writes_for(intent: Intent, run: ChangeRun) -> tuple[Write, ...]:
    """The writes of an intent, from what the cluster says now."""
    if intent.needs_secret and run.credentials is not None:
        return run.credentials(intent)
    return run.cluster.writes_for(intent, read_for(intent, run))


DONE, IN_PART, REFUSED, UNKNOWN, NOT_BEGUN = "carried out", "in part", "refused", "unknown", "not begun"
WORDS = {"written": DONE, "finished": DONE, "refused": REFUSED, "writing": UNKNOWN, "planned": NOT_BEGUN}
ALWAYS_COUNTED = (DONE, REFUSED, UNKNOWN)


def _outcome(entry: Entry, reason: str) -> str:
    """How much of the change was carried out, and why the rest was not."""
    counts = Counter(IN_PART if stage.is_part else WORDS[stage.state] for stage in entry.stages)
    order = (DONE, IN_PART, REFUSED, UNKNOWN, NOT_BEGUN)
    shown = ", ".join(
        f"{counts[words]} {words}" for words in order if counts[words] or words in ALWAYS_COUNTED
    )
    return f"of {counted(len(entry.stages), 'step')} {shown}: {without_reassurance(reason)}"


def _note_progress(entry: Entry, run: ChangeRun) -> None:
    """Record in the journal how far a change is. Raises NotFinished if that fails: the entry is behind the cluster then."""
    try:
        run.journal.write(entry)
    except KctlError as error:
        raise NotFinished(
            f"{_outcome(entry, error.message)}",
            f"once the journal can be written, `kctl journal resume {entry.id}` looks how far it is, and goes on",
        ) from error


def _note_outcome(entry: Entry, outcome: str, run: ChangeRun) -> None:
    """Record in the journal how a change ended; if that fails, the entry as it was is enough to resume."""
    entry.outcome = outcome
    try:
        run.journal.write(entry)
    except KctlError as error:
        run.note(f"warning: {error.message}")


def _ways_on(entry: Entry) -> str:
    """The commands that go on with a change or take it back, and the throttle that stays until then."""
    is_final = any(stage.may_be_written and stage.undo_refused for stage in entry.stages)
    back = "it cannot be undone" if is_final else f"`kctl journal undo {entry.id}` takes it back"
    ways = f"`kctl journal resume {entry.id}` goes on, {back}"
    left = throttle_left(entry)
    is_sure = all(stage.state in WRITTEN for stage in entry.stages if stage.may_be_written)
    stays = "stays" if is_sure else "may stay"
    return f"{ways}; until then its throttle {stays} on {left}" if left else ways


def throttle_left(entry: Entry) -> str:
    """The brokers and topics on which a change leaves a throttle for its moves; nothing if it has none, or has taken it off."""
    stages = entry.stages
    clears = [stage for stage in stages if stage.intent.ends_throttles]
    if any(stage.is_begun or stage.state in WRITTEN for stage in clears):
        return ""
    names: dict[str, set[str]] = {}
    for stage in stages:
        if not stage.may_be_written:
            continue
        for change in stage.intent.throttle_changes:
            names.setdefault(change.entity_type, set()).add(change.entity_name)
    kinds = (
        ("broker", sorted(names.get("brokers", ()), key=int)),
        ("topic", sorted(names.get("topics", ()))),
    )
    return " and ".join(_listed(kind, of) for kind, of in kinds if of)


def _listed(kind: str, names: Sequence[str]) -> str:
    more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    return f"{kind}{'' if len(names) == 1 else 's'} {', '.join(names[:SHOWN])}{more}"


def _commit(entry: Entry, index: int, run: ChangeRun) -> None:
    """Write a stage.

    The writes of an interrupted change may become visible only while it is resumed: brokers reflect them a
    moment after their acknowledgement. Then the rest is computed again; that refuses if somebody else wrote.
    """
    stage, until = entry.stages[index], time.monotonic() + LATE
    while True:
        try:
            with _exclusively(entry, run):
                run.cluster.commit(stage.writes)
            return
        except Conflict:
            if not run.is_resumed or run.cluster.can.compare_versions or time.monotonic() > until:
                raise
        except KctlError as error:
            codes = {item.error_code for item in error.items}
            if run.is_resumed and codes and stage.intent.is_refused_when_done(codes):
                return
            raise
        time.sleep(0.1)
        stage.writes = run.cluster.writes_for(stage.intent, read_for(entry.stages[index].intent, run))
        run.journal.write(entry)


def _read_back(intent: Intent, run: ChangeRun) -> None:
    """Warn about parts of a throttle that brokers do not apply although they were written. The move continues."""
    missing: list[str] = []
    with contextlib.suppress(KctlError):  # the following wait reports a cluster that does not answer
        missing = intent.not_in_force(partial(read_for, intent, run))
    if missing:
        more = f" and {len(missing) - 4} more" if len(missing) > 4 else ""
        run.note(f"warning: the throttle is not in force: {', '.join(missing[:4])}{more}")


def _look_for_left_over(intent: Intent, entry: Entry, index: int, run: ChangeRun) -> None:
    """Clear the throttle where it was not seen before: on brokers that came back, and on topics that were hidden.

    Raises NotFinished if a throttle may be left on brokers or topics that could not be read; `resume` tries again.
    """
    stage, until = entry.stages[index], time.monotonic() + LATE
    taken = {str(broker) for broker in run.cluster.dead_brokers_told(stage.writes)}
    remaining: list[str] = []
    places = intent.places_to_look()
    while True:
        with contextlib.suppress(KctlError):  # what does not answer is asked again, and named in the end
            state = read_for(intent, run)
            remaining, places, is_more = intent.remainder(state, taken)
            if not remaining and not places:
                return
            if (remaining or is_more) and (writes := run.cluster.writes_for(intent, state)):
                with _exclusively(entry, run):
                    run.cluster.commit(writes)
                taken |= {str(broker) for broker in run.cluster.dead_brokers_told(writes)}
        if time.monotonic() > until:
            break
        time.sleep(0.2)
    stage.state, stage.is_begun = "planned", True
    parts = [f"{', '.join(remaining)} stays"] if remaining else []
    if places:
        parts.append(f"the throttle may be left on {', '.join(places)}, whose configuration cannot be read")
    raise _unfinished(entry, run, "; ".join(parts), f"`kctl journal resume {entry.id}` tries again")


def _note_what_was_made(entry: Entry, index: int, run: ChangeRun) -> None:
    """Record the ids of the topics just created: undo must not delete later topics of the same names.

    Of records that were written again, their offsets; of tokens, what takes the change back.
    """
    stage = entry.stages[index]
    note_what_takes_back(entry, stage, run)
    for name, items in stage.intent.details_written().items():
        noted = entry.details.setdefault(name, {})
        assert isinstance(noted, dict)
        assert isinstance(items, dict)
        noted.update(items)
    if stage.state == "finished":
        stage.intent.forget()
    made = [topic for part in stage.intent.parts if (topic := part.topic_made)]
    if not made or all(has_id(entry, topic) for topic in made):
        return
    with contextlib.suppress(KctlError):  # it is written, even if it cannot be read now
        note_made(entry, stage.intent, read_for(stage.intent, run, recent=True))


def note_what_takes_back(
    entry: Entry, stage: RecordedStage, run: ChangeRun, *, is_over: bool = False
) -> None:
    """Record what takes back a change where only brokers tell after it was made, or why nothing takes it back.

    `is_over`: brokers have had time to show it, so that what they do not show is not there; why nothing does is raised.
    """
    if not stage.intent.is_answered:
        return
    try:
        undo = run.cluster.taken_back_by(stage.intent, parse_iso(entry.time))
        if undo or (undo is not None and is_over):
            stage.undo, stage.undo_refused = undo, ""
    except Refused as error:
        if is_over:
            raise
        stage.undo_refused = f"{error.message}; {error.hint}"
    except KctlError:  # it is written, even if it cannot be read now
        pass


def _exclusively(entry: Entry, run: ChangeRun) -> contextlib.AbstractContextManager[None]:
    """Keep other kctl processes from reading and writing meanwhile, if brokers do not compare versions."""
    if run.cluster.can.compare_versions:
        return contextlib.nullcontext()
    return run.journal.exclusively(entry.cluster_id, run.until)


def read_for(intent: Intent, run: ChangeRun, *, recent: bool = False) -> ClusterState:
    """The present state of what an intent depends on."""
    state = run.cluster.read_state(
        intent.topics_concerned(),
        configs=intent.config_types(),
        log_dirs_of=intent.brokers_of_disks(),
        kafka_version=run.kafka_version,
        recent=recent,
    )
    return with_hidden_topics(run.cluster, intent.topics_named(), state)


def _unfinished(entry: Entry, run: ChangeRun, why: str, hint: str = "") -> NotFinished:
    is_part = entry.state == "partly_applied"
    _note_outcome(entry, f"{_outcome(entry, why)}; {_ways_on(entry)}" if is_part else why, run)
    rest = "; ".join(str(stage.intent) for stage in entry.stages if stage.state == "planned")
    then = f", then does the rest: {rest}" if rest else ""
    return NotFinished(
        f"written, but not finished: {why}", hint or f"`kctl journal resume {entry.id}` waits on{then}"
    )


def _missing(waited: Waited) -> str:
    shown = "; ".join(waited.missing[:3])
    more = f" and {len(waited.missing) - 3} more" if len(waited.missing) > 3 else ""
    return f"{waited.finished} of {waited.total} done in time{': ' if shown else ''}{shown}{more}"


def _title(entry: Entry, index: int) -> str:
    number = f" ({index + 1} of {len(entry.stages)})" if len(entry.stages) > 1 else ""
    return f"{entry.stages[index].intent}{number}"


def resume(entry: Entry, run: ChangeRun, *, accepted: bool = False) -> None:
    """Go on with a change that was cut off.

    Raises Refused where there is nothing to go on with, or where what is left lets a partition elect an unclean leader
    that has lost its leader since, unless `accepted`.
    """
    if entry.undone_by:
        raise Refused(
            f"change {entry.id} was undone by {entry.undone_by}",
            f"`kctl journal show {entry.undone_by}` shows that change",
        )
    if entry.is_finished:
        raise Refused(
            f"change {entry.id} is finished",
            _lost_answer(entry) or f"nothing is left to do; `kctl journal undo {entry.id}` undoes it",
        )
    remaining = [stage.intent for stage in entry.stages if stage.state not in WRITTEN]
    refuse_other_topics(entry, remaining, run.cluster)
    split_begun(entry, run)
    cut_off = dict[int, tuple[Write, ...]]()
    for index, stage in enumerate(entry.stages):
        if stage.state == "writing":
            cut_off[index] = tuple(stage.writes)
            _find_out(entry, index, run)
        elif stage.state == "written":
            stage.state = "written" if not stage.intent.is_forgotten else "finished"
            if _was_lost(stage.intent, run):
                stage.state, stage.writes = "planned", ()
        elif stage.state == "planned" and _has_credentials(stage.intent, run):
            stage.state = "written"  # by hand since, as it was asked for
        elif stage.state == "planned":
            stage.writes = ()  # what was read then may have changed since; the intent says what must not have
    if not accepted:
        unfinished = [stage.intent for stage in entry.stages if stage.state in ("planned", "refused")]
        refuse_unaccepted(run.cluster, unfinished, entry.details, run.kafka_version)
    apply(entry, replace(run, is_resumed=True, cut_off=cut_off))
    if lost := _lost_answer(entry):
        raise NotFinished(f"change {entry.id} is carried out", lost)


def _lost_answer(entry: Entry) -> str:
    """What is to be done where a change was carried out whose answer only an earlier run of kctl had; else nothing."""
    told = next((stage.intent.told_once for stage in entry.stages if stage.intent.told_once), "")
    return (
        told
        and f"{told}: where it was not seen it is lost; `kctl journal undo {entry.id}` takes it back, then create another"
    )


def split_begun(entry: Entry, run: ChangeRun) -> None:
    """Split stages of several intents of which a part was carried out: that part and the rest become stages of their own."""
    stages = []
    for index, stage in enumerate(entry.stages):
        intent = stage.intent
        if (
            stage.state != "writing"
            or not isinstance(intent, Several)
            or was_written(entry, index, run)
            or not (stage.is_begun or run.cluster.is_begun(stage.writes))
        ):
            stages.append(stage)
            continue
        state = read_for(intent, run)
        done = [part for part in intent.parts if part.stands(state)]
        parts = (done, [part for part in intent.parts if part not in done])
        for chosen, words in zip(parts, ("written", "planned"), strict=True):
            if chosen:
                stages.append(replace(recorded(Stage(intent=Several(parts=tuple(chosen)))), state=words))
    entry.stages = stages


def _find_out(entry: Entry, index: int, run: ChangeRun) -> None:
    """Find out whether a stage that was cut off was carried out, in full or in part; the rest is planned again."""
    stage = entry.stages[index]
    if was_written(entry, index, run):
        if stage.intent.is_answered:  # raises Refused where it may be somebody else's
            run.cluster.taken_back_by(stage.intent, parse_iso(entry.time))
        stage.state = "written"
        return
    stage.is_begun = stage.is_begun or run.cluster.is_begun(stage.writes)
    stage.state, stage.writes = "planned", ()


def _was_lost(intent: Intent, run: ChangeRun) -> bool:
    """Whether leaders that were elected have lost it since, so that they are to be elected once more."""
    return intent.may_be_lost and bool(intent.how_far(read_for(intent, run)).failed)


def was_written(entry: Entry, index: int, run: ChangeRun) -> bool:
    """Whether a stage that was on its way when kctl ended was carried out."""
    stage = entry.stages[index]
    if stage.writes and run.cluster.is_written(stage.writes):
        return True
    state = read_for(stage.intent, run)
    if any(part.leaves_no_trace(state) for part in stage.intent.parts):
        return False
    if stage.intent.needs_secret:
        return _has_credentials(stage.intent, run)
    return stage.intent.is_shown_written(state)


def _has_credentials(intent: Intent, run: ChangeRun) -> bool:
    """Whether a user that was to be created is there, with the mechanisms that it was to have."""
    return intent.needs_secret and intent.is_shown_by_users(run.cluster.scram_users([]))


def deadline(seconds: float) -> float:
    """The moment, of `time.monotonic`, `seconds` from now."""
    return time.monotonic() + seconds
