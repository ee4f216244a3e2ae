"""Which leadership dropped records, where the present log has no entry for its epoch; elections that logs do not tell of."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from formats.znodes.cluster import NO_LEADER
from kctl.broker_logs.history.leaderships import LIKELY, SURE
from kctl.copies.leaders import Leaders, LeaderTerm
from kctl.copies.log_notes import LogNotes, Note
from kctl.model import TopicPartition
from kctl.replica.loss.causes import PartitionFacts, claimed_epoch, explain_drop
from kctl.replica.loss.search import _is_untold

TP = TopicPartition("t", 0)
TERMS = (
    LeaderTerm(1, 1, (1, 3), from_ms=10_000),
    LeaderTerm(3, 3, (3,), from_ms=20_000),
    LeaderTerm(4, 2, (2,), from_ms=30_000, how="unclean"),
    LeaderTerm(5, 1, (2, 1), from_ms=40_000, how="preferred"),
)
# Where each leader's log ended as it began to lead.
STARTS = {1: 53, 3: 74, 4: 40, 5: 40}


def facts_of(*more: Note, began_at: int = 0, says_starts: bool = True) -> PartitionFacts:
    notes = [
        Note(
            "leader",
            term.leader or 0,
            (term.from_ms or 0) + 100,
            {},
            STARTS[term.leader_epoch],
            leader_epoch=term.leader_epoch,
        )
        for term in TERMS
        if says_starts
    ]
    return SimpleNamespace(  # type: ignore[return-value]
        partition=TP,
        present=SimpleNamespace(recorded=[(0, 0), (5, 40), (6, 78)]),
        leaders=Leaders(TERMS, {term.leader_epoch: term for term in TERMS}),
        log_notes=Notes(notes={TP: [*more, *notes]}, began=began_at),
    )


def dropped_in(
    from_offset: int, epoch: int = 1, *, more: tuple[Note, ...] = (), began_at: int = 0
) -> int | None:
    return claimed_epoch(facts_of(*more, began_at=began_at), epoch, from_offset, 50_000)


class Notes(LogNotes):
    """Notes of a topic that was made at a time."""

    began: int = 0

    def began_at(self, partition: TopicPartition) -> int:
        return self.began


def test_a_leadership_of_an_earlier_topic_dropped_nothing() -> None:
    earlier = Note("leader", 3, 500, {}, 0, leader_epoch=2)
    assert (dropped_in(40, more=(earlier,)), dropped_in(40, more=(earlier,), began_at=1000)) == (2, 4)


def test_a_leader_that_wrote_nothing_dropped_what_it_did_not_have() -> None:
    """The unclean leader of epoch 4 wrote nothing, so that the present log goes on with epoch 5."""
    assert dropped_in(40) == 4


def test_the_first_leader_that_did_not_have_it_dropped_it() -> None:
    assert (dropped_in(60), dropped_in(78), dropped_in(40, epoch=4)) == (4, 3, 5)


@pytest.mark.parametrize(
    ("says_starts", "from_offset", "written_in", "strength"),
    [
        (True, 40, 1, SURE),
        (True, 20, 1, LIKELY),  # the leader's line says that it had this one
        (True, 40, None, LIKELY),  # nothing tells whether a leader before it had dropped it
        (False, 40, 1, LIKELY),
    ],
)
def test_a_leadership_that_a_line_states_is_sure(
    says_starts: bool, from_offset: int, written_in: int | None, strength: str
) -> None:
    facts = facts_of(says_starts=says_starts)
    assert explain_drop(facts, 4, from_offset, written_in, ()).strength == strength


@pytest.mark.parametrize(
    ("epoch", "leader", "how", "is_isr_last", "is_untold"),
    [
        (6, 2, "failure", False, False),
        (6, 2, "unknown", False, True),
        (6, 2, "unknown", True, False),  # from an ISR of which each change is known
        (6, 3, "unknown", True, True),
        (6, 1, "unknown", False, False),
        (6, NO_LEADER, "none", False, False),
        (8, 2, "failure", True, True),
        (8, NO_LEADER, "none", True, True),
        (8, 1, "isr_change", False, True),
        (8, 1, "isr_change", True, False),  # its own log would say that it followed another one
    ],
)
def test_an_election_that_logs_do_not_tell_of(
    epoch: int, leader: int, how: str, is_isr_last: bool, is_untold: bool
) -> None:
    before = LeaderTerm(5, 1, (1, 2), (1, 2), is_isr_last=is_isr_last)
    assert _is_untold(before, LeaderTerm(epoch, leader, how=how)) is is_untold
