"""Transactions: is one hanging. The data log and the coordinator's `__transaction_state` decide."""

from __future__ import annotations

from collections.abc import Sequence

from formats.words import counted
from kctl.judging.judgement import Judgement, JudgementSubject, MissingEvidence, Question, Verdict
from kctl.model import TopicPartition


def judge_transactions(
    partition: TopicPartition,
    hanging: Sequence[bool | None],
    unreadable: Sequence[str] = (),
    unseen: tuple[int, int] | None = None,
    hole: tuple[int, int] | None = None,
) -> Judgement:
    """The judgement on one partition.

    `hanging` has an item for each transaction that its log holds open: None where nothing tells whether its
    coordinator will end it. `unreadable` says which parts of the log gave no records, `unseen` which
    offsets [FROM, TO) its broker had and the copy has not, `hole` at which ones in its middle it holds nothing.
    """
    subject = JudgementSubject(partition.topic, partition.partition)

    def judged(verdict: Verdict, reason: str, *missing: MissingEvidence) -> Judgement:
        return Judgement(Question.TRANSACTIONS, verdict, subject, reason, missing)

    if any(hanging):
        return judged(
            Verdict.DAMAGED,
            f"{counted(sum(map(bool, hanging)), 'open transaction')} will not be ended by anybody",
        )
    if unreadable:
        return judged(
            Verdict.UNREADABLE,
            f"part of the log gave no records: {unreadable[0]}",
            MissingEvidence(
                "the damaged part of the log",
                why=unreadable[0],
                get="copy the partition from another replica",
            ),
        )
    if lacking := unseen or hole:
        start, end = lacking
        why = f"the copy ends at offset {start:,}, below its broker's high watermark {end:,}"
        return judged(
            Verdict.COULD_NOT_JUDGE,
            why if unseen else f"the copy holds nothing at offsets [{start}, {end})",
            MissingEvidence(
                f"offsets [{start}, {end}) of the log", get="copy the partition from another replica"
            ),
        )
    if None in hanging:
        return judged(
            Verdict.COULD_NOT_JUDGE,
            f"{counted(hanging.count(None), 'open transaction')}: it is unknown whether the coordinator will end what is open",
            MissingEvidence(
                "replicas of every partition of __transaction_state",
                get="kctl collect --to more --topic __transaction_state ssh://BROKER/LOG_DIR",
            ),
        )
    if hanging:
        return judged(
            Verdict.SOUND, f"{counted(len(hanging), 'open transaction')}, which the coordinators will end"
        )
    return judged(Verdict.SOUND, "the log holds no transaction open")
