"""Captured output of a KRaft cluster of 3.9: found by what it holds, every line of the controllers known.

Three combined nodes. Broker 2 was killed and came back, broker 3 stopped and came back, broker 1 was killed and came
back; then `ledger` was deleted and made again, and the preferred leaders were elected.
"""

from __future__ import annotations

from kctl.broker_logs.events import Count, prepare
from kctl.broker_logs.sources import find_sources
from kctl.broker_logs.timeline import Timeline, timeline
from kctl.model import TopicPartition
from tests.conftest import recording

NAME = "logs/kraft-3.9"


def history() -> Timeline:
    return timeline(prepare(find_sources([str(recording(NAME))])).events())


def test_every_line_of_controllers_and_state_changes_has_a_template() -> None:
    found = find_sources([str(recording(NAME))])
    assert [(s.broker_id, s.kind, len(s.files)) for s in found.sources] == [
        (1, "stdout", 1),
        (2, "stdout", 1),
        (3, "stdout", 1),
    ]
    count = Count()
    merging = prepare(found)
    for event in merging.events():
        count.note(event)
    assert (count.unknown, count.continuations) == (0, 0)
    assert count.events > 1000
    assert not merging.reading.findings and not found.findings


def test_who_led_and_why() -> None:
    found = history()
    told = {
        str(partition): [(one.leader_epoch, one.leader, one.how) for one in ones]
        for partition, ones in found.leaderships.items()
    }
    # A shutdown that was over before a broker led is not why it no longer leads.
    assert told["orders-3"] == [(0, 1, "creation"), (1, 3, "failure"), (2, 1, "unknown")]
    assert told["orders-1"] == [(0, 2, "creation"), (1, 3, "failure"), (2, 2, "controlled_shutdown")]
    assert told["orders-4"] == [(0, 3, "creation"), (1, 1, "controlled_shutdown"), (2, 3, "failure")]
    again = found.of(TopicPartition("ledger", 0))[-1]
    assert (again.leader_epoch, again.isr, again.how) == (0, (1, 2, 3), "creation")
    assert not found.unclean


def test_terms_and_lives() -> None:
    found = history()
    assert [(term.broker_id, term.controller_epoch) for term in found.controllers] == [(3, 2), (1, 3), (3, 5)]
    # A controller that starts replays the metadata log: what happened before does not happen again.
    told = {id: [one.state for one in found.brokers if one.broker_id == id] for id in (1, 2, 3)}
    life = ["starting", "registered", "unfenced", "up"]
    assert told[1] == [*life, "killed", "fenced", *life]
    assert told[2] == [*life, "killed", "fenced", *life]
    stops = ["stopping", "controlled_shutdown", "fenced", "down"]
    assert told[3] == [*life, *stops, *life]
