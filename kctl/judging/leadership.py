"""Leadership: who led when, and was an election unclean. Logs of the controllers, or a metadata log, decide."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

from formats.words import counted
from kctl.broker_logs.history.leaderships import Leadership
from kctl.judging.fetching import broker_logs
from kctl.judging.judgement import Judgement, JudgementSubject, MissingEvidence, Question, Verdict
from kctl.model import TopicPartition
from kctl.times import iso

CONTROLLER_LOGS = "controller.log and state-change.log of the controllers"


def judge_leadership(
    partition: TopicPartition,
    leaderships: Sequence[Leadership],
    *,
    is_since_asked: bool = False,
    newest: tuple[int, str] | None = None,
) -> Judgement:
    """The judgement on the history of one partition; `leaderships` ascend by time and may cross topic ids.

    `is_since_asked`: a time range was asked for, so that the first leadership may have begun before it. `newest` is the
    greatest leader epoch that something beside the logs names, and its file.
    """
    subject = JudgementSubject(partition.topic, partition.partition)
    missing = (*_missing(leaderships, is_since_asked), *_after(leaderships, newest))
    unclean = [leadership.leader_epoch for leadership in leaderships if leadership.how == "unclean"]
    if unclean:
        epochs = ", ".join(map(str, unclean))
        reason = f"the election of epoch {epochs} was unclean"
        return Judgement(Question.LEADERSHIP, Verdict.DAMAGED, subject, reason, missing)
    if not leaderships:
        missing = (broker_logs(CONTROLLER_LOGS),)
        reason = "no line of the logs says who led"
        return Judgement(Question.LEADERSHIP, Verdict.COULD_NOT_JUDGE, subject, reason, missing)
    if missing:
        reason = (
            f"the logs do not tell how {len(missing):,} of {counted(len(leaderships), 'leadership')} began"
        )
        if len(missing) == 1 and (later := [*_after(leaderships, newest)]):
            reason = f"the logs end before the last leadership: {later[0].why}"
        return Judgement(Question.LEADERSHIP, Verdict.COULD_NOT_JUDGE, subject, reason, missing)
    which = "the one leadership" if len(leaderships) == 1 else f"each of {len(leaderships):,} leaderships"
    reason = f"the logs tell {which} and how it began"
    return Judgement(Question.LEADERSHIP, Verdict.SOUND, subject, reason)


def judge_silent(partition: TopicPartition) -> Judgement:
    """The judgement on a partition that is in the evidence and that no log names."""
    return judge_leadership(partition, ())


def _after(leaderships: Sequence[Leadership], newest: tuple[int, str] | None) -> Iterator[MissingEvidence]:
    """The logs that would show the epochs after the last known one."""
    if leaderships and newest is not None and newest[0] > leaderships[-1].leader_epoch:
        name = f"{CONTROLLER_LOGS} after {iso(leaderships[-1].last_seen_ms)}"
        yield broker_logs(name, why=f"{newest[1]} names leader epoch {newest[0]}")


def _missing(leaderships: Sequence[Leadership], is_since_asked: bool) -> Iterator[MissingEvidence]:
    """The logs that would close each gap in the history: its times, and the epochs that began in it."""
    for number, leadership in enumerate(leaderships):
        before = leaderships[number - 1] if number else None
        if leadership.began_before and before is None:
            if is_since_asked:
                continue
            name = f"{CONTROLLER_LOGS} before {iso(leadership.from_ms)}"
            yield broker_logs(name, why="the logs begin later")
        elif leadership.how == "unknown":
            since = before.last_seen_ms if before is not None else leadership.from_ms
            name = f"{CONTROLLER_LOGS} between {iso(since)} and {iso(leadership.from_ms)}"
            yield broker_logs(name, why=f"it is unknown how epoch {leadership.leader_epoch} began")
    for earlier, later in pairwise(leaderships):
        if later.leader_epoch > earlier.leader_epoch + 1:
            name = f"{CONTROLLER_LOGS} between {iso(earlier.last_seen_ms)} and {iso(later.from_ms)}"
            epochs = f"{earlier.leader_epoch + 1} to {later.leader_epoch - 1}"
            yield broker_logs(name, why=f"the logs have nothing about epochs {epochs}")
