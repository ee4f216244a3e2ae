"""What makes an election unclean: what controllers name, held against the ISR that is known before it."""

from __future__ import annotations

from typing import Any

import pytest

from formats.values import replace
from kctl.copies.leaders import Leaders, LeaderTerm
from kctl.copies.lineage import Lineage
from kctl.copies.log_notes import LogNotes, Note
from kctl.model import TopicPartition
from kctl.replica.loss.causes import PartitionFacts, costs_unknown, explain_drop, is_unclean
from kctl.replica.loss.commitment import commitment_of
from kctl.replica.loss.log_claims import Claim
from kctl.replica.loss.present_lineage import PresentLeader

ORDERS = TopicPartition("orders", 0)


def leaders(*known: LeaderTerm) -> Leaders:
    return Leaders(known, {led.leader_epoch: led for led in known})


def led(epoch: int, leader: int, *isr: int, how: str = "unknown", is_last: bool = False) -> LeaderTerm:
    return LeaderTerm(epoch, leader, isr, isr, how=how, is_isr_last=is_last)


@pytest.mark.parametrize(
    ("before", "how", "expected"),
    [
        # The ISR may have shrunk unseen under a leader without logs: what the controller names stays.
        ([led(4, 1, 1, 2)], "unclean", True),
        ([led(4, 1, 1, 2)], "unknown", False),
        ([led(4, 1, 1, 3)], "unclean", True),
        ([led(4, 1, 1, 3)], "unknown", False),
        ([led(4, 1, 1, 3, is_last=True)], "unknown", True),
        # Logs of that leader that begin late do not take back what the controller said.
        ([led(4, 1, 1, 2, is_last=True)], "unclean", True),
        ([led(4, 1, 1, 2, is_last=True)], "unknown", False),
        # Before 1.1 the controller warns whoever comes back where nobody was left in the ISR.
        ([led(3, 2, 2), LeaderTerm(4, -1, ())], "unclean", False),
        ([led(3, 1, 1), LeaderTerm(4, -1, ())], "unclean", True),
        ([led(3, 1, 1), LeaderTerm(4, -1, ())], "unknown", True),
        ([], "unclean", True),
        ([], "unknown", False),
    ],
)
def test_what_the_controller_names_unclean_stays_so(
    before: list[LeaderTerm], how: str, expected: bool
) -> None:
    elected = led(5, 2, 2, how=how)
    assert is_unclean(leaders(*before, elected), elected) is expected


def test_an_eligible_leader_replica_leads_cleanly() -> None:
    before = LeaderTerm(4, -1, (), (), is_isr_last=True, eligible=(2,))
    elected = led(5, 2, 2)
    assert not is_unclean(leaders(led(3, 1, 1), before, elected), elected)


@pytest.mark.parametrize("writer", [0, 3])
def test_the_leader_before_wrote_the_records_also_where_its_id_is_0(writer: int) -> None:
    known = leaders(led(4, writer, writer, 1), led(5, 1, 1))
    assert explain_drop(replace(facts_of(), leaders=known), 5, 10, None, [writer]).written_by == writer


def facts_of(*notes: Note, before: int = 1, recorded: tuple[tuple[int, int], ...] = ((4, 0), (5, 42))) -> Any:
    """Broker 2 leads in epoch 5 at second 10, `before` in epoch 4 at second 1; nothing is held by any copy."""
    known = Leaders(
        (LeaderTerm(4, before, (1, 2), (1, 2), 1_000), LeaderTerm(5, 2, (2,), (2,), 10_000)),
        {4: LeaderTerm(4, before, (1, 2), (1, 2), 1_000), 5: LeaderTerm(5, 2, (2,), (2,), 10_000)},
    )
    lineage = Lineage(0, 500, recorded=recorded)
    present = PresentLeader(None, None, 2, None, None, 500, lineage)  # type: ignore[arg-type]
    log_notes = LogNotes(notes={ORDERS: list(notes)}, starts={2: [500, 8_000]})
    return PartitionFacts(ORDERS, present, known, log_notes, [])


def note(what: str, second: float, offset: int | None = None, end: int | None = None) -> Note:
    return Note(what, 2, int(1000 * second), {"line": int(second)}, offset, end)


@pytest.mark.parametrize(
    ("notes", "recorded", "cause"),
    [
        # It was loaded with the records and cut them to its own mark.
        ([note("loaded", 2, end=60), note("fell_back", 3), note("cut", 3, 42)], None, "high_watermark_truncation"),
        ([note("loaded", 2, end=60), note("asked_to_cut", 3, 42)], (), "high_watermark_truncation"),
        # With epochs the leader had told it where to cut.
        ([note("loaded", 2, end=60), note("cut", 3, 42)], None, "unknown"),
        # The records at these offsets then were others: these were written in epoch 4, from second 1 on.
        ([note("loaded", -9, end=60), note("fell_back", -8), note("cut", -8, 42)], None, "unknown"),
    ],
)  # fmt: skip
def test_a_cut_drops_the_records_that_were_there_then(
    notes: list[Note], recorded: tuple[tuple[int, int], ...] | None, cause: str
) -> None:
    facts = facts_of(*notes) if recorded is None else facts_of(*notes, recorded=recorded)
    assert explain_drop(facts, 5, 42, 4, [1]).cause == cause


@pytest.mark.parametrize(
    ("notes", "before", "cause"),
    [
        ([note("loaded", 1, end=60), note("loaded", 8, end=0), note("created", 8)], 1, "disk_lost"),
        ([note("leader", 1), note("created", 8)], 2, "disk_lost"),  # it wrote them itself
        ([note("follower", 1, end=30), note("created", 8)], 1, "unknown"),  # nothing says that it had them
        ([note("created", 1)], 2, "unknown"),  # a topic that is made
        # What it cut as a follower, it had fetched since.
        ([note("loaded", 1, end=60), note("created", 8), note("cut", 9, 42)], 1, "unknown"),
        ([note("loaded", 1, end=60), note("loaded", 8, end=0)], 1, "unknown"),
    ],
)
def test_a_disk_is_lost_where_a_log_is_created_anew(notes: list[Note], before: int, cause: str) -> None:
    drop = explain_drop(facts_of(*notes, before=before), 5, 42, 4, [1])
    assert (drop.cause, drop.leader_epoch) == (cause, 5)
    assert [proof.line for proof in drop.proofs if proof.kind == "disk_lost"] == (
        [1, 8] if cause == "disk_lost" else []
    )


@pytest.mark.parametrize(
    ("notes", "is_said"),
    [
        ([], True),
        ([note("loaded", 11, end=60)], False),
        ([note("loaded", 11, end=0)], False),  # an empty log that is still there
        ([note("loaded", 11, end=0), note("created", 11)], True),
        ([note("loaded", 11, end=0), note("created", 11), note("follower", 12)], True),
        ([note("follower", 11), note("created", 12)], False),
    ],
)
def test_a_log_created_anew_is_no_witness(notes: list[Note], is_said: bool) -> None:
    facts = facts_of(*[one._replace(broker_id=1) for one in notes])
    elected = LeaderTerm(5, 2, (2,), (2,), 10_000, how="unclean")
    before = LeaderTerm(4, 1, (1,), (1,), 1_000, is_isr_last=True)
    known = Leaders((before, elected), {4: before, 5: elected})
    found = list(costs_unknown(replace(facts, leaders=known), ()))
    assert [finding.code for finding in found] == (["replica-unclean-cost-unknown"] if is_said else [])


@pytest.mark.parametrize(("to_offset", "committed"), [(None, 60), (70, 60), (50, 50)])
def test_the_mark_of_a_log_that_was_cut_bounds_what_was_committed(
    to_offset: int | None, committed: int
) -> None:
    """Where no line tells the end of the log, its own high watermark is not above it."""
    mark = Note("follower", 1, 9_000, {"file": "f", "line": 1, "text": ""}, 60, 60, 60, 5)
    facts = facts_of(mark)
    claim = Claim(1, 42, to_offset, 11_000, 4, (mark,))
    drop = explain_drop(facts, 5, 42, 4, [1])
    assert commitment_of(facts, drop, 42, to_offset, [], [claim]).lower == committed
