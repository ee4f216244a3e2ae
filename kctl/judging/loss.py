"""Loss: is something committed gone.

Copies of every replica that may have held committed records decide, or logs that show that no election dropped
any. A copy that proves a loss decides alone.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import NamedTuple

from formats.values import Struct
from formats.words import counted
from kctl.copies.leaders import LeaderTerm
from kctl.evidence.model import Unopened
from kctl.findings import Finding
from kctl.findings import replica as replica_findings
from kctl.judging.fetching import (
    COPY_METADATA,
    assignment,
    broker_logs,
    other_replicas,
    replica_of,
    unopened_path,
)
from kctl.judging.judgement import Judgement, JudgementSubject, MissingEvidence, Question, Verdict
from kctl.model import TopicPartition

# Findings of the search that keep it from an answer, and what would settle each.
UNDECIDED: Mapping[str, str] = {
    replica_findings.LEADER_UNKNOWN.code: "it is unknown which of the contradicting copies leads",
    replica_findings.PREFIX_LOST.code: "the copy of the present leader is not in the evidence",
    replica_findings.PRESENT_INCOMPLETE.code: "the copy of the present leader is not whole",
    replica_findings.UNCLEAN_COST_UNKNOWN.code: "an election was unclean, and it is unknown what it dropped",
    replica_findings.TOPIC_RECREATED.code: "the copies are of different topics of this name",
    replica_findings.CLUSTERS_MIXED.code: "the copies are from different clusters",
}
# Findings that a copy of a running broker, or a cleaner, explains without any loss, asked after certain damage; and why
# another copy of that broker is needed.
MAY_BE_NO_LOSS: Mapping[str, tuple[str, str]] = {
    replica_findings.INCOMPLETE_COPY.code: (
        "checkpoints name offsets that no copy of the last moment reaches",
        "its copy and its checkpoints do not fit each other",
    ),
    replica_findings.START_MISSING.code: (
        "leader epochs begin below the first segment, and nothing says that retention took it",
        "its copy begins above its leader epochs",
    ),
    replica_findings.GAP_EVERYWHERE.code: (
        "offsets are in no copy, and nothing shows the compaction or retention that took them",
        "its copy lacks offsets in the middle of its log",
    ),
}
UNREADABLE = frozenset({replica_findings.COPY_UNREADABLE.code})
# Findings of what no copy has whole: there is no record to call lost.
DAMAGED = frozenset({replica_findings.DAMAGED_COPY.code, replica_findings.HOLE_EVERYWHERE.code})
CLEAN = frozenset(
    {"creation", "controlled_shutdown", "failure", "preferred", "reassignment", "isr_change", "none"}
)


class Untold(NamedTuple):
    """What the logs do not tell about a partition's leaders.

    It matters because an unclean election drops records from every copy and leaves no trace in them.
    """

    epochs: tuple[int, ...] = ()
    """Leader epochs with another leader than the one before, of which logs do not tell how they began."""
    cut: tuple[int, int] | None = None
    """A broker that cut its log, and the offset to which, where no line tells who led."""


class LossFacts(Struct, frozen=True):
    """The facts that the judgement of one partition needs."""

    partition: TopicPartition
    copies: frozenset[int]  # brokers with a copy, of any moment
    assigned: frozenset[int]  # replicas at any time in question; empty where nothing tells them
    evidence_brokers: frozenset[int]
    leaderships: Sequence[LeaderTerm] = ()
    has_broker_logs: bool = False
    is_deleted: bool = False  # the cluster's newest metadata has no such topic
    was_there: bool = False  # earlier metadata of the cluster has it
    is_metadata_there: bool = False  # znodes or a metadata log are in the evidence
    unopened: tuple[Unopened, ...] = ()  # paths of the evidence below which more copies may lie
    # Checkpoints of the last moment name it, and no log directory of then has it.
    is_folder_missing: bool = False
    remote_only: tuple[int, int] | None = None  # offsets below the local log, in remote storage alone
    newest_epoch: int = -1  # leader epoch that znodes or a copy name
    untold: Untold = Untold()


def judge_loss(
    facts: LossFacts, loss_classes: Collection[str], findings: Collection[Finding] = ()
) -> Judgement:
    """The judgement on one partition, from the classes of its losses and the findings of the search."""
    partition = facts.partition
    subject = JudgementSubject(partition.topic, partition.partition)
    needed = facts.assigned | {broker for leadership in facts.leaderships for broker in leadership.isr or ()}
    missing_replicas = [replica_of(broker_id, partition) for broker_id in sorted(needed - facts.copies)]

    def judged(verdict: Verdict, reason: str, missing: Sequence[MissingEvidence] = ()) -> Judgement:
        return Judgement(Question.LOSS, verdict, subject, reason, tuple(missing))

    if "committed" in loss_classes:
        return judged(Verdict.LOST, "committed records are not in the present log", missing_replicas)
    if facts.is_deleted and facts.was_there:
        return judged(Verdict.SOUND, "the topic was deleted, and deletion is no loss")
    if facts.is_deleted:
        return judged(
            Verdict.COULD_NOT_JUDGE,
            "the newest metadata of the cluster have no such topic: it was deleted, or they are of another cluster",
            [assignment("of the cluster that has the topic")],
        )
    if facts.is_folder_missing:
        return judged(
            Verdict.COULD_NOT_JUDGE,
            "checkpoints of the last moment name the partition, and no log directory of then has its folder",
            [replica_of(broker_id, partition) for broker_id in sorted(needed or facts.copies)],
        )
    unread = [finding for finding in findings if finding.code in UNREADABLE]
    if unread:
        brokers = sorted({f.place.broker_id for f in unread if f.place.broker_id is not None})
        missing = [replica_of(b, partition, None, "could not be read whole") for b in brokers]
        return judged(Verdict.UNREADABLE, unread[0].message, [*missing, *missing_replicas])
    if "unknown" in loss_classes:
        missing = missing_replicas or [
            broker_logs("server.log of the brokers of the ISR, with their high watermarks")
        ]
        return judged(
            Verdict.COULD_NOT_JUDGE,
            "records are gone, and it is unknown whether they were committed",
            missing,
        )
    for finding in findings:
        if finding.code in UNDECIDED:
            missing = missing_replicas or [assignment()]
            return judged(Verdict.COULD_NOT_JUDGE, UNDECIDED[finding.code], missing)
    dropped = "; records that were never committed were dropped" if loss_classes else ""
    if facts.remote_only:
        start, end = facts.remote_only
        dropped += f"; offsets [{start}, {end}) lie in remote storage alone, which `kctl remote audit` judges"
    damaged = next((finding.message for finding in findings if finding.code in DAMAGED), None)
    if damaged and missing_replicas:
        return judged(Verdict.COULD_NOT_JUDGE, damaged, missing_replicas)
    if damaged and (needed or len(facts.evidence_brokers) > 1):
        return judged(Verdict.DAMAGED, damaged)
    for finding in findings:
        if finding.code in MAY_BE_NO_LOSS:  # after damage, which is certain
            reason, why = MAY_BE_NO_LOSS[finding.code]
            copy = replica_of(finding.place.broker_id or 0, partition, finding.place.moment, why)
            missing = missing_replicas or [copy]
            return judged(Verdict.COULD_NOT_JUDGE, reason, missing)
    for finding in findings:
        if finding.code in UNPROVEN:
            reason, lacking = UNPROVEN[finding.code]
            return judged(Verdict.COULD_NOT_JUDGE, reason, [*missing_replicas, lacking(finding)])
    if facts.untold != Untold() and facts.copies:
        what = "controller.log and state-change.log of the controllers"
        reason = f"{_left_open(facts.untold)}: an unclean election drops records from every copy"
        return judged(Verdict.COULD_NOT_JUDGE, reason, [*missing_replicas, broker_logs(what)])
    if not needed:
        return _of_unknown_assignment(facts, judged, dropped)
    if not missing_replicas:
        return judged(
            Verdict.SOUND,
            f"{'the copy of the one replica was' if len(needed) == 1 else f'the copies of all {len(needed)} replicas were'} compared{dropped}",
        )
    if facts.copies and _every_election_was_clean(facts):
        return judged(
            Verdict.SOUND,
            f"{len(facts.copies)} of {counted(len(needed), 'replica')} were compared, and the logs show every election up to"
            f" epoch {facts.leaderships[-1].leader_epoch}: none was unclean{dropped}",
        )
    return judged(
        Verdict.COULD_NOT_JUDGE,
        f"{len(needed) - len(missing_replicas)} of {counted(len(needed), 'replica')} are in the evidence, and nothing shows that the others"
        " held no more",
        missing_replicas,
    )


def _left_open(untold: Untold) -> str:
    """What the logs do not tell, as the beginning of a sentence."""
    if untold.cut is not None:
        broker_id, offset = untold.cut
        return f"broker {broker_id} cut its log to offset {offset}, and the logs do not tell who led"
    epochs = ", ".join(map(str, untold.epochs))
    return (
        f"the logs do not tell how leader {'epoch' if len(untold.epochs) == 1 else 'epochs'} {epochs} began"
    )


def _deleted(finding: Finding) -> MissingEvidence:
    """Whether a topic was deleted: where it was not, the stray folder is all that there is of it."""
    folder = (finding.place.file or "").rpartition("/")[2]
    what = f"whether somebody deleted the topic that {folder} is of"
    return MissingEvidence(
        what, finding.place.broker_id, None, "neither metadata nor logs tell", COPY_METADATA
    )


def _power(finding: Finding) -> MissingEvidence:
    """Whether hosts lost power: a process that was killed alone loses nothing that it had written."""
    broker_id = finding.place.broker_id
    owner = "BROKER" if broker_id is None else f"BROKER{broker_id}"
    what = "whether the hosts of the ISR lost power, or only the processes ended"
    return MissingEvidence(
        what, broker_id, None, "broker logs do not tell", f"ssh {owner} last -x reboot shutdown"
    )


# Records may be gone, or of another topic, and the evidence does not tell: why, and what would.
UNPROVEN: Mapping[str, tuple[str, Callable[[Finding], MissingEvidence]]] = {
    replica_findings.STRAY_RECORDS.code: (
        "a stray folder holds records of another topic of this name, and nothing says that somebody deleted it",
        _deleted,
    ),
    replica_findings.TAIL_UNPROVEN.code: (
        "every member of the ISR had ended without a shutdown or begun with a new log, and what only they held may be gone",
        _power,
    ),
}


def judge_recovered(judgement: Judgement, partition: TopicPartition, *, is_at_least: bool) -> Judgement:
    """The judgement of a partition whose lost records the cluster has again, as far as copies hold them.

    `is_at_least`: more than copies hold may be lost.
    """
    if judgement.verdict is not Verdict.LOST:
        return judgement
    there = "the lost records are in the cluster again"
    if not is_at_least:
        return judgement._replace(verdict=Verdict.SOUND, reason=there)
    why = "every copy may lack its tail"
    tails = MissingEvidence(f"what {partition} held behind the ends of its copies", None, None, why)
    return judgement._replace(
        verdict=Verdict.COULD_NOT_JUDGE,
        reason=f"{there}, as far as copies hold them; {why}, so more may be lost",
        missing=(tails,),
    )


def judge_acknowledged(judgement: Judgement, facts: LossFacts, acks: str) -> Judgement:
    """The same judgement, with what it says of records that the leader alone had acknowledged.

    With acks=0 and acks=1 no other copy needs to have had a record: where the leader changed, copies do not show that
    nothing went with it.
    """
    if judgement.verdict is not Verdict.SOUND or facts.is_deleted:
        return judgement
    leaders = [term.leader for term in facts.leaderships if term.leader not in (None, -1)]
    has_changed = len(set(leaders)) > 1 or (not leaders and facts.newest_epoch > 0)
    if acks != "all" and has_changed:
        why = "its leader changed, and no copy shows what it alone had acknowledged"
        log = MissingEvidence(
            f"logs of the leaders of {facts.partition} from before they changed", None, None, why
        )
        return judgement._replace(
            verdict=Verdict.COULD_NOT_JUDGE,
            reason=f"the leader changed, and a record acknowledged with acks={acks} may have been on the earlier one alone",
            missing=(log,),
        )
    if any(term.how == "unclean" for term in facts.leaderships):
        caveat = "; an election was unclean: records acknowledged with acks=1 alone may be gone (--acks 1)"
        return judgement._replace(reason=judgement.reason + caveat)
    return judgement


Judge = Callable[..., Judgement]


def _of_unknown_assignment(facts: LossFacts, judged: Judge, dropped: str) -> Judgement:
    """Nothing tells which brokers hold replicas: the brokers in the evidence are taken as all, where there are several."""
    if facts.is_metadata_there:
        return judged(
            Verdict.COULD_NOT_JUDGE, "the metadata in the evidence have no such topic", [assignment()]
        )
    if facts.unopened:
        return judged(
            Verdict.COULD_NOT_JUDGE,
            f"the assignment is unknown, and {facts.unopened[0].path} {facts.unopened[0].why}",
            [*map(unopened_path, facts.unopened), assignment()],
        )
    if len(facts.evidence_brokers) > 1 and facts.copies:
        return judged(
            Verdict.SOUND,
            f"the assignment is unknown; the {len(facts.evidence_brokers)} brokers in the evidence are taken as"
            f" all{dropped}",
        )
    return judged(
        Verdict.COULD_NOT_JUDGE,
        "one broker is in the evidence, and the assignment is unknown",
        [other_replicas(facts.partition), assignment()],
    )


def _every_election_was_clean(facts: LossFacts) -> bool:
    """Whether logs tell who led in each epoch from the first one on, and that each election was clean."""
    epochs = [leadership.leader_epoch for leadership in facts.leaderships]
    return (
        facts.has_broker_logs
        and bool(epochs)
        and epochs == list(range(epochs[-1] + 1))
        and epochs[-1] >= facts.newest_epoch
        and all(leadership.leader is not None and leadership.how in CLEAN for leadership in facts.leaderships)
    )
