"""What log lines alone say was cut away: from where, up to where, and whether the present lineage bears it out."""

from __future__ import annotations

import pytest

from kctl.copies.leaders import Leaders, LeaderTerm
from kctl.copies.lineage import Lineage
from kctl.copies.log_notes import LogNotes, Note
from kctl.model import TopicPartition
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


def role(
    what: str, epoch: int, end: int | None = None, mark: int | None = None, at: int | None = None
) -> Note:
    return Note(what, 1, 0, {}, at if what == "leader" else end, end, mark, epoch)


def test_what_a_log_holds_where_the_epoch_that_it_follows_began_is_lost_without_a_cut() -> None:
    """Epoch 3 began at offset 0, epoch 5 at 42. The lines of the cut are not in the evidence."""
    assert claimed(role("leader", 3, at=0), role("follower", 5, end=59)) == [(42, 59)]
    assert claimed(role("follower", 3, end=40), role("follower", 5, end=59), led=None) == [(42, 59)]
    assert claimed(role("leader", 3, at=0), role("fetching", 5, mark=59)) == [(42, None)]
    # It ends where the epoch begins.
    assert claimed(role("leader", 3, at=0), role("follower", 5, end=42)) == []
    # It followed that epoch before: its records may be of it.
    assert (
        claimed(role("follower", 5, end=42), note("loaded", end=59), role("follower", 5, end=59), led=None)
        == []
    )
    assert claimed(note("loaded", end=59), role("follower", 5, end=59), led=None) == []
    # No record of the epoch is in the present log.
    assert claimed(role("leader", 3, at=0), role("follower", 4, end=59)) == []
    # Nothing that it wrote in its own epoch is present: all of it is lost.
    assert claimed(role("leader", 4, at=40), role("follower", 5, end=59), led=4) == [(40, 59)]
    # The line of the cut says what went.
    assert claimed(role("leader", 3, at=0), role("follower", 5, end=59), note("cut", 50)) == [(50, 59)]


def test_what_was_fetched_from_a_leader_was_written_in_its_epoch() -> None:
    lines = role("leader", 1, at=0), role("follower", 3, end=10), note("loaded", end=59)
    present = ((1, 0), (2, 8), (3, 12), (5, 42))
    assert claimed(*lines, role("follower", 5, end=59), note("cut", 42), recorded=present, led=1) == [
        (42, 59)
    ]
    # Nothing was fetched: what it had was of its own epoch.
    lines = role("leader", 1, at=0), role("follower", 3, end=59)
    assert {*claimed(*lines, role("follower", 5, end=59), note("cut", 8), recorded=present, led=1)} == {
        (8, 59)
    }
    # What was fetched in the present epoch is in the present log.
    lines = role("leader", 3, at=0), role("follower", 5, end=42), note("loaded", end=59)
    assert claimed(*lines, note("cut", 42)) == []


def test_what_a_broker_led_is_known_apart_from_what_it_followed() -> None:
    """A copy from before the cut is held against the epochs that the broker led itself."""
    lines = role("leader", 1, at=0), role("follower", 3, end=10), note("loaded", end=59), note("cut", 8)
    notes = [one._replace(time_ms=1000 * second) for second, one in enumerate(lines, start=1)]
    leaders = led_by(LeaderTerm(1, 1, from_ms=0))
    lineage = Lineage(0, 500, recorded=((1, 0), (2, 8), (5, 42)))
    present = PresentLeader(None, None, 2, None, None, 500, lineage)  # type: ignore[arg-type]
    claims = find_claims(ORDERS, LogNotes(notes={ORDERS: notes}), leaders, present)
    assert [(claim.epoch, claim.led_epoch) for claim in claims] == [(3, 1)]


def test_what_was_fetched_and_cut_again_is_of_no_claim_after_that() -> None:
    """Of epoch 3 nothing is left behind offset 8, so that the records cut next are of the epoch that the broker led."""
    present = ((1, 0), (2, 20), (4, 30), (5, 42))
    first = role("leader", 1, at=0), role("follower", 3, end=10), note("loaded", end=59)
    second = role("follower", 4, end=59), note("cut", 8), role("leader", 1, at=0), note("loaded", end=50)
    claims = claimed(*first, *second, role("follower", 5, end=50), note("cut", 15), recorded=present, led=1)
    assert claims[-1] == (20, 50)


def test_epochs_of_which_nothing_is_present_are_lost_from_where_the_first_of_them_began() -> None:
    """Broker 1 fetched epoch 4 from offset 41 on and led epoch 5 from 97 on; what is present is of others."""
    present = ((0, 0), (1, 41), (7, 143))
    lines = (
        role("leader", 4, at=41)._replace(broker_id=2),
        role("leader", 0, at=0),
        role("follower", 4, end=41),
        note("loaded", end=97),
        role("leader", 5, at=97),
    )
    cut = role("follower", 7, end=134), note("cut", 41)
    assert {*claimed(*lines, *cut, recorded=present, led=5)} == {(41, 134)}
    # Without the line of the cut.
    assert {*claimed(*lines, cut[0], recorded=present, led=5)} == set()  # it ends below where epoch 7 began
    assert {*claimed(*lines, role("follower", 7, end=150), recorded=present, led=5)} == {(41, 150)}


def test_an_empty_log_grows_too() -> None:
    present = ((0, 0), (1, 41), (7, 143))
    lines = note("created"), role("follower", 4, end=0), note("loaded", end=97)
    lines = *lines, role("follower", 7, end=150)
    assert {*claimed(*lines, recorded=present, led=None)} == {(143, 150)}  # where epoch 4 began nobody says
    for start in (0, 20):  # what it fetched first was of older epochs (2.4, seed 914)
        leads = role("leader", 4, at=start)._replace(broker_id=2)
        assert {*claimed(leads, *lines, recorded=present, led=None)} == {(start, 150)}
