"""Which leadership dropped records, where the present log has no entry for its epoch."""

from __future__ import annotations

from types import SimpleNamespace

from kctl.model import TopicPartition
from kctl.replica.copies.leaders import Leaders, LeaderTerm
from kctl.replica.copies.log_notes import LogNotes, Note
from kctl.replica.loss.causes import claimed_epoch

TP = TopicPartition("t", 0)
TERMS = (
    LeaderTerm(1, 1, (1, 3), from_ms=10_000),
    LeaderTerm(3, 3, (3,), from_ms=20_000),
    LeaderTerm(4, 2, (2,), from_ms=30_000, how="unclean"),
    LeaderTerm(5, 1, (2, 1), from_ms=40_000, how="preferred"),
)
# Where each leader's log ended as it began to lead.
STARTS = {1: 53, 3: 74, 4: 40, 5: 40}


def dropped_in(from_offset: int, epoch: int = 1) -> int | None:
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
    ]
    facts = SimpleNamespace(
        partition=TP,
        present=SimpleNamespace(recorded=[(0, 0), (5, 40), (6, 78)]),
        leaders=Leaders(TERMS, {term.leader_epoch: term for term in TERMS}),
        log_notes=LogNotes(notes={TP: notes}),
    )
    return claimed_epoch(facts, epoch, from_offset, 50_000)  # type: ignore[arg-type]


def test_a_leader_that_wrote_nothing_dropped_what_it_did_not_have() -> None:
    """The unclean leader of epoch 4 wrote nothing, so that the present log goes on with epoch 5."""
    assert dropped_in(40) == 4


def test_the_first_leader_that_did_not_have_it_dropped_it() -> None:
    assert (dropped_in(60), dropped_in(78), dropped_in(40, epoch=4)) == (4, 3, 5)
