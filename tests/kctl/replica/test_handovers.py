"""A leader that was told to stop, that learnt late of its successor, that cut what it had."""

from __future__ import annotations

import pytest

from kctl.copies.leaders import Leaders, LeaderTerm
from kctl.copies.lineage import Lineage
from kctl.copies.log_notes import LogNotes, Note
from kctl.model import TopicPartition
from kctl.replica.loss.causes import Cause, Drop, PartitionFacts, explain_drop
from kctl.replica.loss.present_lineage import PresentLeader

ORDERS = TopicPartition("orders", 0)


def leaders(*known: LeaderTerm) -> Leaders:
    return Leaders(known, {led.leader_epoch: led for led in known})


def explained(how: str, *isr: int, is_last: bool = True, notes: tuple[Note, ...] = (), **starts: int) -> Drop:
    """The drop of records that broker 1 wrote in epoch 4, by broker 2, which led from second 100 on."""
    known = leaders(
        LeaderTerm(4, 1, isr, isr, from_ms=50_000, is_isr_last=is_last),
        LeaderTerm(5, 2, (2,), (2,), from_ms=100_000, how=how),
    )
    said = LogNotes(notes={ORDERS: [*notes]}, starts={1: [*starts.values()]})
    present = PresentLeader(None, None, 2, None, None, 50, Lineage(0, 50))  # type: ignore[arg-type]
    return explain_drop(PartitionFacts(ORDERS, present, known, said, []), 5, 10, 4, [1])


def note(what: str, broker_id: int, time_ms: int, **said: int) -> Note:
    return Note(what, broker_id, time_ms, {}, **said)


HANDOVERS = ("controlled_shutdown", "preferred", "reassignment")


@pytest.mark.parametrize("how", HANDOVERS)
def test_a_leader_that_was_told_to_stop_hands_over(how: str) -> None:
    drop = explained(how, 1, 2)
    assert (drop.is_handover, drop.cause) == (True, Cause.UNKNOWN)
    # The controller takes a member of the ISR: that it is not in the last one that is known says nothing.
    drop = explained(how, 1, 3)
    assert (drop.is_handover, drop.cause) == (False, Cause.UNKNOWN)


@pytest.mark.parametrize("how", ["failure", "unclean", "creation", "isr_change", "unknown"])
def test_a_leader_that_failed_hands_nothing_over(how: str) -> None:
    assert not explained(how, 1, 2).is_handover
    assert explained(how, 1, 3).cause is Cause.UNCLEAN_ELECTION


LATE = note("follower", 1, 101_500)


def test_a_leader_that_learns_late_is_a_zombie() -> None:
    assert explained("failure", 1, 2, notes=(LATE,)).cause is Cause.ZOMBIE_LEADER
    # It learnt at once; it was started anew; it was told to stop; nothing says what it learnt.
    assert explained("failure", 1, 2, notes=(note("follower", 1, 100_999),)).cause is Cause.UNKNOWN
    assert explained("failure", 1, 2, notes=(LATE,), again=101_000).cause is Cause.UNKNOWN
    assert explained("preferred", 1, 2, notes=(LATE,)).cause is Cause.UNKNOWN
    assert explained("failure", 1, 2, notes=(note("follower", 3, 101_500),)).cause is Cause.UNKNOWN
    assert explained("failure", 1, 2, notes=(note("follower", 1, 99_000),)).cause is Cause.UNKNOWN


def test_a_leader_that_cut_what_it_had_truncated_to_a_high_watermark() -> None:
    def cause(end: int, cut: int, at: int = 90_000) -> Cause:
        loaded = note("loaded", 2, 80_000, log_end_offset=end)
        return explained("failure", 1, 2, notes=(loaded, note("cut", 2, at, offset=cut))).cause

    assert cause(15, 10) is Cause.HIGH_WATERMARK_TRUNCATION
    assert cause(15, 11) is Cause.UNKNOWN  # the first lost record stayed
    assert cause(10, 8) is Cause.UNKNOWN  # it had none of them
    assert cause(15, 10, at=102_000) is Cause.UNKNOWN  # when it led already
