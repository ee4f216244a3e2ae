"""What copies show of records that the leader alone had acknowledged."""

from __future__ import annotations

import pytest

from kctl.copies.leaders import LeaderTerm
from kctl.judging.judgement import Judgement, JudgementSubject, Question, Verdict
from kctl.judging.loss import LossFacts, judge_acknowledged
from kctl.model import TopicPartition

SOUND = Judgement(
    Question.LOSS, Verdict.SOUND, JudgementSubject("t", 0), "the copies of all 2 replicas were compared"
)
ONE = LeaderTerm(0, 1, (1, 2), how="creation")
NOBODY = LeaderTerm(1, -1, (1,), how="none")


@pytest.mark.parametrize(
    ("terms", "acks", "verdict", "words"),
    [
        ((ONE,), "1", Verdict.SOUND, "compared"),
        ((ONE, NOBODY, LeaderTerm(2, 1, (1,), how="failure")), "1", Verdict.SOUND, "compared"),
        ((ONE, LeaderTerm(1, 2, (2,), how="failure")), "1", Verdict.COULD_NOT_JUDGE, "acks=1"),
        ((ONE, LeaderTerm(1, 2, (2,), how="failure")), "0", Verdict.COULD_NOT_JUDGE, "acks=0"),
        ((ONE, LeaderTerm(1, 2, (2,), how="failure")), "all", Verdict.SOUND, "compared"),
        ((ONE, LeaderTerm(1, 2, (2,), how="unclean")), "all", Verdict.SOUND, "acks=1 alone may be gone"),
        ((), "1", Verdict.COULD_NOT_JUDGE, "acks=1"),
    ],
)  # fmt: skip
def test_a_change_of_the_leader_leaves_it_open(
    terms: tuple[LeaderTerm, ...], acks: str, verdict: Verdict, words: str
) -> None:
    facts = LossFacts(
        TopicPartition("t", 0), frozenset({1, 2}), frozenset({1, 2}), frozenset({1, 2}), terms, newest_epoch=3
    )
    judged = judge_acknowledged(SOUND, facts, acks)
    assert judged.verdict is verdict and words in judged.reason
    assert verdict is Verdict.SOUND or judged.missing
