"""Divergence: do the copies of a partition agree. Copies of at least two replicas of one moment decide."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from formats.words import counted
from kctl.evidence.model import Unopened
from kctl.judging.fetching import assignment, other_replicas, replica_of, unopened_path
from kctl.judging.judgement import Judgement, JudgementSubject, MissingEvidence, Question, Verdict
from kctl.model import TopicPartition

AGREEING = ("equal", "behind")
WRONG = ("diverged", "damaged", "hole")


def judge_divergence(
    partition: TopicPartition,
    moment: str | None,
    copies: Collection[int],
    assigned: Sequence[int],
    evidence_brokers: Collection[int],
    verdict: str = "unknown",
    reason: str = "",
    unreadable: Sequence[tuple[int, str]] = (),
    incomplete: Sequence[tuple[int, str]] = (),
    unopened: Sequence[Unopened] = (),
    agreement: str = "hold the same records at every shared offset",
) -> Judgement:
    """The judgement on the copies of one partition at one moment.

    `verdict` and `reason` are those of the comparison; `assigned` is empty where nothing tells the assignment;
    `unreadable` names brokers whose copy was read in part only, and why, `incomplete` those whose copy is not all that the
    broker had; `unopened` paths of the evidence below which
    another copy may lie; `agreement` is what was found of copies that agree.
    """
    subject = JudgementSubject(partition.topic, partition.partition, None, moment)

    def judged(verdict: Verdict, reason: str, missing: Sequence[MissingEvidence] = ()) -> Judgement:
        return Judgement(Question.DIVERGENCE, verdict, subject, reason, tuple(missing))

    missing_replicas = [
        replica_of(broker_id, partition, moment) for broker_id in assigned if broker_id not in copies
    ]
    if verdict in WRONG:
        return judged(Verdict.DAMAGED, reason, missing_replicas)
    if unreadable:
        missing = [replica_of(broker_id, partition, moment, why) for broker_id, why in unreadable]
        names = ", ".join(f"broker {broker_id}" for broker_id, _ in unreadable)
        return judged(
            Verdict.UNREADABLE, f"the copy of {names} could not be read whole", [*missing, *missing_replicas]
        )
    if len(copies) < 2:
        if len(assigned) == 1:
            return judged(Verdict.SOUND, "the partition has one replica: there is nothing to diverge from")
        if assigned:
            return judged(
                Verdict.COULD_NOT_JUDGE,
                f"{len(copies)} of {counted(len(assigned), 'replica')} is in the evidence",
                missing_replicas,
            )
        if unopened:
            return judged(
                Verdict.COULD_NOT_JUDGE,
                f"the assignment is unknown, and {unopened[0].path} {unopened[0].why}",
                [*map(unopened_path, unopened), assignment("which brokers hold replicas", moment)],
            )
        if len(evidence_brokers) > 1 and copies:
            return judged(
                Verdict.SOUND,
                f"the assignment is unknown; of the {len(evidence_brokers)} brokers in the evidence, taken as all,"
                " one holds the partition",
            )
        return judged(
            Verdict.COULD_NOT_JUDGE,
            "one broker is in the evidence, and the assignment is unknown",
            [other_replicas(partition, moment), assignment("which brokers hold replicas", moment)],
        )
    if verdict not in AGREEING:
        missing = [replica_of(broker_id, partition, moment, why) for broker_id, why in incomplete]
        missing = [*missing, *missing_replicas] or [other_replicas(partition, moment)]
        return judged(Verdict.COULD_NOT_JUDGE, reason or "the comparison has no verdict", missing)
    names = ", ".join(map(str, sorted(copies)))
    return judged(Verdict.SOUND, f"the copies of brokers {names} {agreement}")
