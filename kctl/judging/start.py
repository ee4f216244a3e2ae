"""Start: would a broker start on these log directories, and would the start destroy nothing."""

from __future__ import annotations

from formats.words import counted
from kctl.judging.fetching import COPY_METADATA, GO_ON, log_dirs_of, other_replicas, settings_of
from kctl.judging.judgement import Judgement, JudgementSubject, MissingEvidence, Question, Verdict
from kctl.log_dir_start.forecast import BrokerStart
from kctl.log_dir_start.steps import PlacedStep, StepKind
from kctl.model import TopicPartition


def judge_start(start: BrokerStart) -> Judgement:
    """The judgement of one broker's start."""
    subject = JudgementSubject(broker_id=start.broker_id, moment=start.moment)
    lost = lost_in(start)
    not_copied = tuple(
        MissingEvidence(name, start.broker_id, start.moment, why, GO_ON) for name, why in start.not_copied
    )
    open_ = {p for s in start.steps if s.destroyed and s.destroyed.only_copy is None and (p := s.partition)}
    missing: tuple[MissingEvidence, ...] = tuple(other_replicas(p, start.moment) for p in sorted(open_))
    missing += not_copied
    if start.is_fetched:
        lacking = log_dirs_of(start.broker_id, "the evidence", start.moment)
        missing += (lacking._replace(why="a broker gave its batches, and nothing else"),)
    if start.lacks_settings:
        missing += (settings_of(start.broker_id, start.moment),)
    if lost:
        partition, (records, committed) = next(iter(lost.items()))
        kind = "committed " if committed else ""
        count = committed or records
        more = f", and records of {counted(len(lost) - 1, 'more partition')}" if len(lost) > 1 else ""
        noun = "record" if count == 1 else "records"
        reason = f"it would cut {count:,} {kind}{noun} of {partition} that no other copy holds{more}"
        return Judgement(
            Question.START, Verdict.LOST, subject, f"Do not start {start.who}: {reason}", missing
        )
    if start.starts is False:
        words = start.failure.words if start.failure else ""
        return Judgement(
            Question.START,
            Verdict.DAMAGED,
            subject,
            f"{start.who} does not start: {words.rstrip('.')}",
            missing,
        )
    if start.offline:
        count = len(start.offline)
        noun = "log directory goes" if count == 1 else "log directories go"
        reason = f"{start.who} starts, and {count} {noun} offline"
        return Judgement(Question.START, Verdict.DAMAGED, subject, reason, missing)
    if start.lacks_settings:
        return Judgement(Question.START, Verdict.COULD_NOT_JUDGE, subject, start.unknown[-1], missing)
    renamed = sum(step.step.step is StepKind.RENAME for step in start.steps)
    if renamed and renamed == start.live_partitions:
        reason = f"{start.who} starts empty: it renames all its {renamed} partition folders to -stray"
        return Judgement(Question.START, Verdict.DAMAGED, subject, reason, missing)
    if open_:
        names = ", ".join(map(str, sorted(open_)[:3]))
        reason = f"{start.who} would cut records of {names}, and no other copy of them is in the evidence"
        return Judgement(Question.START, Verdict.COULD_NOT_JUDGE, subject, reason, missing)
    if start.unknown or start.unread:
        reason = (*start.unread, *start.unknown)[0]
        return Judgement(Question.START, Verdict.COULD_NOT_JUDGE, subject, reason, missing)
    if not start.are_strays_known:
        reason = f"{start.who} starts; which folders are stray then, the metadata log tells, and it is not in the evidence"
        metadata_log = MissingEvidence(
            "the metadata log of the cluster", None, start.moment, "it is not in the evidence", COPY_METADATA
        )
        return Judgement(Question.START, Verdict.COULD_NOT_JUDGE, subject, reason, (*missing, metadata_log))
    cut = sum(s.destroyed.records if s.destroyed else s.step.records_cut or 0 for s in start.steps)
    unsound = sum(
        s.step.bytes_cut or 0 for s in start.steps if s.step.is_damage_cut and not s.step.records_cut
    )
    what = "nothing is cut"
    if cut:
        what = f"the {counted(cut, 'record')} that it cuts {'is' if cut == 1 else 'are'} in other copies"
    elif unsound:
        what = f"the {counted(unsound, 'byte')} that it cuts hold no readable record"
    aside = f"; stray folders that it renames: {renamed}" if renamed else ""
    return Judgement(Question.START, Verdict.SOUND, subject, f"{start.who} starts{aside}; {what}")


def lost_in(start: BrokerStart) -> dict[TopicPartition, tuple[int, int]]:
    """Offsets that no other copy holds by partition, and how many of these are known to be committed."""
    lost: dict[TopicPartition, tuple[int, int]] = {}
    for placed in start.steps:
        partition = placed.partition
        if partition is None or not is_lost(placed) or placed.destroyed is None:
            continue
        offsets, committed = lost.get(partition, (0, 0))
        offsets += sum(after - first for first, after in placed.destroyed.missing)
        lost[partition] = (offsets, committed + (placed.destroyed.committed or 0))
    return lost


def is_lost(placed: PlacedStep) -> bool:
    """Whether the step destroys what no other copy holds."""
    return placed.destroyed is not None and placed.destroyed.only_copy is True
