"""What log lines alone say was cut away: from where, up to where, and whether the present lineage bears it out."""

from __future__ import annotations

import pytest

from kctl.model import TopicPartition
from kctl.replica.copies.leaders import Leaders, LeaderTerm
from kctl.replica.copies.lineage import Lineage
from kctl.replica.copies.log_notes import LogNotes, Note
from kctl.replica.loss.log_claims import find_claims
from kctl.replica.loss.present_lineage import PresentLeader

ORDERS = TopicPartition("orders", 0)


def note(what: str, offset: int | None = None, end: int | None = None) -> Note:
    return Note(what, 1, 0, {}, offset, end)


def led_by(*known: LeaderTerm) -> Leaders:
    return Leaders(known, {term.leader_epoch: term for term in known})


def claimed(
    *said: Note,
    recorded: tuple[tuple[int, int], ...] = ((3, 0), (5, 42)),
    led: int | None = 3,
    dropped_ms: int | None = None,
) -> list[tuple[int, int | None]]:
    """The claims of broker 1, which led in epoch `led`, from these lines, one a second.

    `dropped_ms` is when epoch 5 began, which begins at offset 42.
    """
    notes = [one._replace(time_ms=1000 * second) for second, one in enumerate(said, start=1)]
    known = () if led is None else (LeaderTerm(led, 1, from_ms=0),)
    known += () if dropped_ms is None else (LeaderTerm(5, 2, from_ms=dropped_ms),)
    present = PresentLeader(None, None, 2, None, None, 500, Lineage(0, 500, recorded=recorded))  # type: ignore[arg-type]
    claims = find_claims(ORDERS, LogNotes(notes={ORDERS: notes}), led_by(*known), present)
    return [(claim.from_offset, claim.to_offset) for claim in claims]


@pytest.mark.parametrize("mark", [[note("fell_back"), note("cut", 145)], [note("asked_to_cut", 145)]])
def test_a_cut_to_the_own_mark_does_not_hide_what_was_there(mark: list[Note]) -> None:
    assert claimed(note("loaded", end=152), *mark) == []
    assert claimed(note("loaded", end=152), *mark, note("reset", 42, 145)) == [(42, 152)]
    assert claimed(note("loaded", end=152), *mark, note("cut", 42)) == [(42, 152)]
    # It was fetched again, and more.
    assert claimed(note("loaded", end=152), *mark, note("reset", 42, 160)) == [(42, 160)]
    # Who led since had all that counts.
    assert claimed(note("loaded", end=152), *mark, note("leader"), note("reset", 42, 145)) == [(42, 145)]
    # What one cut took is not taken again by the next.
    assert claimed(note("loaded", end=152), *mark, note("cut", 50), note("cut", 45)) == [(50, 152), (45, 50)]


def test_a_cut_without_an_end_claims_nothing_that_no_line_says_was_there() -> None:
    assert claimed(note("cut", 42)) == [(42, None)]
    # What was cut below the start of the present epoch was fetched again; nothing says that there was more.
    assert claimed(note("cut", 30)) == []
    assert claimed(note("shrank", end=45), note("cut", 30)) == [(42, None)]
    assert claimed(note("shrank", end=40), note("cut", 30)) == []
    assert claimed(note("loaded", end=45), note("cut", 30)) == [(42, 45)]


def test_what_a_log_held_below_a_cut_went_with_its_disk() -> None:
    """Nothing tells of its end, but that a leadership that begins below it began after the cut."""
    lines = note("loaded", end=70), note("cut", 60)
    assert claimed(*lines) == [(60, 70)]
    assert claimed(*lines, dropped_ms=60_000) == [(42, 70)]
    # What is cut under that leadership was fetched from it up to there.
    assert claimed(*lines, dropped_ms=1_500) == [(60, 70)]
    assert claimed(*lines, dropped_ms=2_500) == [(60, 70)]  # the clocks of two brokers


def test_a_leader_no_longer_falls_back_to_an_earlier_mark() -> None:
    """Before it led it was to fall back to its mark, which changed nothing."""
    assert claimed(note("fell_back"), note("leader"), note("cut", 42)) == [(42, None)]
    assert claimed(note("fell_back"), note("created"), note("leader"), note("cut", 42)) == [(42, None)]
    assert claimed(note("fell_back"), note("cut", 42)) == []


def test_a_log_reaches_to_the_mark_from_which_it_is_fetched_on() -> None:
    fetching = Note("fetching", 1, 0, {}, None, None, 108)
    assert claimed(note("leader"), fetching, note("cut", 30)) == [(42, None)]
    assert claimed(note("leader"), note("cut", 30)) == []
    assert claimed(note("loaded", end=152), fetching, note("cut", 42)) == [(42, 152)]
