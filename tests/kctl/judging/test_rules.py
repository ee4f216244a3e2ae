"""What decides each question, case by case: no verdict reassures over what was not examined."""

from __future__ import annotations

from typing import Any, cast

import pytest

from kctl.broker_logs.history.leaderships import Leadership as LoggedLeadership
from kctl.copies.leaders import LeaderTerm
from kctl.evidence.model import Unopened
from kctl.findings import Place
from kctl.findings import evidence as said_of_evidence
from kctl.findings import remote as said_of_tier
from kctl.findings import replica as said_of_replicas
from kctl.findings import segments as said_of_segments
from kctl.judging.divergence import judge_divergence
from kctl.judging.fetching import replica_of
from kctl.judging.integrity import Integrity
from kctl.judging.judgement import Coverage, Judgement, JudgementSubject, Question, Verdict, judgement_rows
from kctl.judging.leadership import judge_leadership
from kctl.judging.loss import LossFacts, Untold, judge_loss
from kctl.judging.sentences import coverage_sentence
from kctl.judging.tier import TierJudge
from kctl.judging.transactions import judge_transactions
from kctl.model import TopicPartition

ORDERS = TopicPartition("orders", 0)
LOST, DAMAGED, UNREADABLE, OPEN, SOUND = Verdict


@pytest.mark.parametrize(
    ("copies", "assigned", "brokers", "compared", "expected", "missing"),
    [
        ((1, 2, 3), (1, 2, 3), (1, 2, 3), "equal", SOUND, []),
        ((1, 2), (1, 2, 3), (1, 2), "behind", SOUND, []),
        ((1, 2), (1, 2, 3), (1, 2), "diverged", DAMAGED, ["replica of broker 3"]),
        ((1, 2), (), (1, 2), "unknown", OPEN, ["replicas of the other brokers"]),
        ((1,), (1, 2), (1, 2), "unknown", OPEN, ["replica of broker 2"]),
        ((1,), (1,), (1,), "unknown", SOUND, []),
        ((1,), (), (1, 2), "unknown", SOUND, []),
        ((1,), (), (1,), "unknown", OPEN, ["replicas of the other brokers", "znodes or metadata log: which brokers hold replicas"]),
    ],
)  # fmt: skip
def test_divergence(
    copies: Any, assigned: Any, brokers: Any, compared: str, expected: Verdict, missing: list[str]
) -> None:
    judgement = judge_divergence(ORDERS, None, copies, assigned, brokers, compared, f"they are {compared}")
    assert (judgement.verdict, [thing.what for thing in judgement.missing]) == (expected, missing)
    assert judgement.reason and all(thing.get for thing in judgement.missing)


def test_a_copy_that_could_not_be_read_does_not_agree() -> None:
    judgement = judge_divergence(
        ORDERS, None, (1, 2), (1, 2), (1, 2), "equal", "", [(2, "permission denied")]
    )
    assert judgement.verdict is UNREADABLE
    assert judgement.missing[0].why == "permission denied"


def facts(**changed: Any) -> LossFacts:
    values: dict[str, Any] = {
        "partition": ORDERS,
        "copies": frozenset({1, 2, 3}),
        "assigned": frozenset({1, 2, 3}),
        "evidence_brokers": frozenset({1, 2, 3}),
        "is_metadata_there": True,
    }
    return LossFacts(**{**values, **changed})


CLEAN_HISTORY = [LeaderTerm(0, 1, (1, 2, 3), how="creation"), LeaderTerm(1, 2, (2, 3), how="failure")]
ONE_COPY = {"copies": frozenset({1}), "evidence_brokers": frozenset({1})}
UNKNOWN = {"assigned": frozenset[int](), "is_metadata_there": False}


@pytest.mark.parametrize(
    ("changed", "classes", "expected"),
    [
        ({}, [], SOUND),
        ({}, ["committed"], LOST),
        (ONE_COPY, ["committed"], LOST),
        ({}, ["unknown"], OPEN),
        ({}, ["uncommitted"], SOUND),
        (ONE_COPY, [], OPEN),
        ({"copies": frozenset({1, 2})}, [], OPEN),
        ({"copies": frozenset({1, 2}), "leaderships": CLEAN_HISTORY, "has_broker_logs": True}, [], SOUND),
        ({"copies": frozenset({1, 2}), "leaderships": CLEAN_HISTORY[1:], "has_broker_logs": True}, [], OPEN),
        (
            {"copies": frozenset({1, 2}), "has_broker_logs": True,
             "leaderships": [CLEAN_HISTORY[0], LeaderTerm(1, 2, (2,), how="unclean")]},
            [], OPEN,
        ),
        (UNKNOWN, [], SOUND),
        (UNKNOWN | ONE_COPY, [], OPEN),
        ({"assigned": frozenset[int]()}, [], OPEN),  # metadata without the topic
        ({"is_deleted": True}, [], OPEN),
        ({"copies": frozenset({1}), "assigned": frozenset({1})}, [], SOUND),
        # a member of an ISR held what was committed, whoever is assigned now
        ({"copies": frozenset({1, 2}), "assigned": frozenset({1, 2}), "leaderships": CLEAN_HISTORY}, [], OPEN),
        ({"copies": frozenset[int](), "leaderships": CLEAN_HISTORY, "has_broker_logs": True}, [], OPEN),
        (UNKNOWN | {"copies": frozenset[int]()}, [], OPEN),
        (UNKNOWN | {"unopened": (Unopened("broker-4"),)}, [], OPEN),
        # an unclean election that logs do not tell of drops records from every copy
        ({"untold": Untold(epochs=(3,))}, [], OPEN),
        (UNKNOWN | {"untold": Untold(epochs=(3, 4))}, ["uncommitted"], OPEN),
        ({"untold": Untold(cut=(2, 26))}, [], OPEN),
        ({"untold": Untold(epochs=(3,))}, ["committed"], LOST),
    ],
)  # fmt: skip
def test_loss(changed: dict[str, Any], classes: list[str], expected: Verdict) -> None:
    judgement = judge_loss(facts(**changed), classes)
    assert judgement.verdict is expected, judgement.reason
    assert (expected is not OPEN) or judgement.missing


def test_what_keeps_the_search_from_an_answer_is_no_sound_partition() -> None:
    place = Place(broker_id=2)
    unclear = said_of_replicas.LEADER_UNKNOWN.at(place, partition=ORDERS)
    assert judge_loss(facts(), [], [unclear]).verdict is OPEN
    unread = said_of_replicas.COPY_UNREADABLE.at(place, broker_id=2, reason="permission denied")
    for classes in ([], ["uncommitted"]):
        judgement = judge_loss(facts(), classes, [unread])
        assert judgement.verdict is UNREADABLE
        assert [thing.broker_id for thing in judgement.missing] == [2]


def led(epoch: int, how: str, **more: Any) -> LoggedLeadership:
    return LoggedLeadership(
        ORDERS, epoch, 1, how=how, from_ms=1000 * epoch, last_seen_ms=1000 * epoch, **more
    )


@pytest.mark.parametrize(
    ("leaderships", "expected", "missing"),
    [
        ([led(0, "creation"), led(1, "failure")], SOUND, 0),
        ([], OPEN, 1),
        ([led(0, "creation"), led(1, "unclean")], DAMAGED, 0),
        ([led(0, "creation"), led(1, "unknown")], OPEN, 1),
        ([led(0, "creation"), led(3, "failure")], OPEN, 1),
        ([led(4, "failure", began_before=True)], OPEN, 1),
    ],
)
def test_leadership(leaderships: Any, expected: Verdict, missing: int) -> None:
    judgement = judge_leadership(ORDERS, leaderships)
    assert (judgement.verdict, len(judgement.missing)) == (expected, missing)


@pytest.mark.parametrize(("epoch", "expected"), [(1, SOUND), (2, OPEN)])
def test_logs_that_end_before_the_last_epoch_do_not_tell_all(epoch: int, expected: Verdict) -> None:
    judgement = judge_leadership(
        ORDERS, [led(0, "creation"), led(1, "failure")], newest=(epoch, "znodes.jsonl")
    )
    assert judgement.verdict is expected
    if expected is OPEN:
        assert judgement.missing[0].why == "znodes.jsonl names leader epoch 2"
        assert judgement.missing[0].why in judgement.reason


@pytest.mark.parametrize(
    ("hanging", "unreadable", "expected"),
    [
        ([], [], SOUND), ([False], [], SOUND), ([True, False], [], DAMAGED), ([None], [], OPEN),
        ([], ["a batch is damaged"], UNREADABLE), ([True], ["a batch is damaged"], DAMAGED),
    ],
)  # fmt: skip
def test_transactions(hanging: Any, unreadable: Any, expected: Verdict) -> None:
    assert judge_transactions(ORDERS, hanging, unreadable).verdict is expected


def test_integrity() -> None:
    integrity = Integrity()
    whole, broken = (
        Place(broker_id=1, topic="orders", partition=0),
        Place(broker_id=1, topic="orders", partition=1),
    )
    for _ in range(3):
        integrity.file(whole)
    integrity.file(broken)
    integrity.finding(
        said_of_segments.ILLEGAL_MAGIC.at(broken, size_in_bytes=3, magic=7, taken_for="nothing")
    )
    integrity.finding(said_of_evidence.UNREADABLE.at(Place(file="x"), reason="permission denied"))
    integrity.path("gone", "no such file")
    judgements = {judgement.subject: judgement for judgement in integrity.judgements()}
    assert judgements[JudgementSubject("orders", 0, 1)].verdict is SOUND
    assert judgements[JudgementSubject("orders", 0, 1)].reason == "every byte of 3 files was examined"
    assert judgements[JudgementSubject("orders", 1, 1)].verdict is DAMAGED
    assert judgements[JudgementSubject()].verdict is UNREADABLE
    assert len(judgements[JudgementSubject()].missing) == 2


def test_what_was_not_examined_is_not_whole_and_hides_no_damage() -> None:
    integrity = Integrity()
    first, second = (Place(broker_id=b, topic="orders", partition=0, file=f"{b}.log") for b in (1, 2))
    for place in (first, second):
        integrity.file(place)
        integrity.finding(said_of_segments.NOT_EXAMINED.at(place, limit=5, examined=1))
    assert [judgement.verdict for judgement in integrity.judgements()] == [UNREADABLE, UNREADABLE]
    integrity.finding(
        said_of_segments.ILLEGAL_MAGIC.at(second, size_in_bytes=3, magic=7, taken_for="nothing")
    )
    unread, damaged = integrity.judgements()
    assert (unread.verdict, damaged.verdict) == (UNREADABLE, DAMAGED)
    assert [thing.broker_id for thing in damaged.missing] == [2]


@pytest.mark.parametrize(
    ("has_objects", "reads_content", "finding", "expected"),
    [
        (True, True, None, SOUND),
        (False, True, None, OPEN),
        (True, False, None, OPEN),
        (True, True, said_of_tier.OBJECT_VANISHED, DAMAGED),
        (True, True, said_of_tier.OBJECT_ENCRYPTED, OPEN),
    ],
)
def test_tier(has_objects: bool, reads_content: bool, finding: Any, expected: Verdict) -> None:
    judge = TierJudge(has_objects, reads_content)
    judge.partition(ORDERS, segments=1, untold=None)
    if finding:
        judge.finding(finding.at(Place(topic="orders", partition=0)))
    assert [judgement.verdict for judgement in judge.judgements()] == [expected]


def test_objects_of_no_known_partition_are_named_so() -> None:
    judge = TierJudge(has_objects=False)
    judge.finding(said_of_tier.OBJECT_VANISHED.at(Place(file="random.log")))
    (judgement,) = judge.judgements()
    assert [missing.what for missing in judgement.missing] == ["segment objects of an unknown partition"]


def test_a_note_on_what_is_no_tiered_partition_makes_it_no_subject() -> None:
    """The end of a copy of the metadata is none of the tier's remote segments."""
    judge = TierJudge(has_objects=True)
    judge.partition(ORDERS, segments=1, untold=None)
    judge.finding(said_of_tier.TOPIC_UNKNOWN.at(Place(topic="__remote_log_metadata", partition=7)))
    assert [judgement.subject.topic for judgement in judge.judgements()] == [ORDERS.topic]


def test_coverage_counts_every_subject_once() -> None:
    judgements = [
        Judgement(Question.LOSS, verdict, JudgementSubject("orders", number), "because")
        for number, verdict in enumerate(Verdict)
    ]
    *rows, coverage = judgement_rows(judgements)
    assert len(rows) == 5
    assert coverage["judged"] == 3
    assert all(coverage[str(verdict)] == 1 for verdict in Verdict)


def test_a_question_without_a_subject_was_not_answered() -> None:
    (coverage,) = judgement_rows([], [Question.TIER])
    assert coverage["judged"] == 0
    assert coverage_sentence(coverage) == "tier: nothing was judged, the evidence has nothing on it"


def test_a_sentence_names_what_was_not_judged() -> None:
    coverage = Coverage(Question.DIVERGENCE)
    for number in range(12):
        coverage.add(Judgement(Question.DIVERGENCE, SOUND, JudgementSubject("orders", number), "equal"))
    for number in range(3):
        coverage.add(judge_divergence(TopicPartition("ledger", number), None, (1,), (1, 2), (1,)))
    assert coverage_sentence(coverage.row()) == (
        "divergence: 12 partitions in agreement; 3 not judged (missing: replica of broker 2)"
    )


def test_what_is_lost_or_damaged_is_wrong_and_what_is_missing_counts_once_a_subject() -> None:
    assert [verdict.is_wrong for verdict in Verdict] == [True, True, False, False, False]
    judgement = judge_loss(facts(**ONE_COPY), [])
    coverage = Coverage(Question.LOSS)
    coverage.add(judgement)
    coverage.add(judgement._replace(missing=judgement.missing * 2))
    assert set(coverage.missing.values()) == {2}


def test_brokers_of_the_isr_are_needed_where_no_assignment_is_known() -> None:
    known = facts(
        assigned=frozenset[int](),
        copies=frozenset({1, 2}),
        leaderships=[LeaderTerm(0, 1, (1, 2), how="creation")],
    )
    assert judge_loss(known, []).reason == "the copies of all 2 replicas were compared"
    open_ = judge_loss(
        facts(assigned=frozenset[int](), copies=frozenset({1}), leaderships=known.leaderships), []
    )
    assert (open_.verdict, len(open_.missing)) == (OPEN, 1)


def test_what_many_partitions_lack_is_one_thing_with_one_command() -> None:
    coverage = Coverage(Question.LOSS)
    partitions = [TopicPartition("orders", number) for number in range(3)]
    for partition in partitions:
        missing = (replica_of(2, partition),)
        coverage.add(Judgement(Question.LOSS, OPEN, JudgementSubject(*partition), "why", missing))
        (row,) = cast("list[dict[str, object]]", coverage.row()["missing"])
        chosen = "--topic orders --partition 0 " if partition == partitions[0] else ""
        assert row["get"] == f"kctl collect --to more {chosen}ssh://BROKER2/LOG_DIR"
    assert row["subjects"] == 3
