"""What the metadata log of a KRaft cluster says about partitions, in the place of znodes."""

from __future__ import annotations

from pathlib import Path

from kctl.copies.moments import Znodes, clusters_of, take_back, unconfirmed
from kctl.errors import KctlError
from kctl.evidence.discover import discover
from kctl.internal_topics.decisions import Decision
from kctl.model import TopicPartition
from tests.conftest import recording


def clusters(folder: Path) -> dict[str | None, Znodes]:
    reported: list[KctlError] = []
    found = clusters_of(discover([str(folder)]), reported.append)
    assert reported == []
    return found


def test_a_metadata_log_is_read_as_znodes_are() -> None:
    (found,) = clusters(recording("segments/4.3.0-kraft") / "data-killed").values()
    state = found.state(TopicPartition("payments", 2))
    assert state is not None
    assert (state.leader, state.leader_epoch, state.isr, state.file) == (1, 0, (1,), "__cluster_metadata-0")
    assert found.live == {1}
    assert found.is_compacted("profile.changes")
    assert found.is_compacted("payments") is None
    assert found.topic_ids["payments"] == "gTVYqYJISGWkuT7QPw3N7w"
    assert "short-lived" not in found.created  # it was deleted
    assert found.replicas[TopicPartition("payments", 0)] == (1,)


def test_who_is_eligible_besides_the_isr_is_known() -> None:
    (found,) = clusters(recording("drills/eligible-4.3-kraft") / "moments" / "alone").values()
    assert found.decisions[TopicPartition("el", 0)][-1].eligible == (2,)
    assert found.minimum_isr("el") == 2


def test_every_decision_that_the_log_still_has_is_known() -> None:
    (found,) = clusters(recording("segments/3.9.1-kraft")).values()
    decided = found.decisions[TopicPartition("txn-mix", 0)]
    assert [(one.leader, one.leader_epoch, one.isr, one.how) for one in decided] == [
        (1, 0, (1,), "creation"),
        (1, 0, (1,), "creation"),  # the broker said in which directory it keeps the replica
        (-1, 1, (1,), "none"),
        (1, 2, (1,), "failure"),
        (-1, 3, (1,), "none"),
    ]
    assert found.state(TopicPartition("txn-mix", 0)) is None  # nobody leads
    assert found.live == set()


ORDERS = TopicPartition("orders", 0)


def decision(offset: int | None, epoch: int, leader: int, *isr: int, topic_id: str = "T") -> Decision:
    return Decision(ORDERS, topic_id, leader, epoch, 0, isr, (), (), (1, 2, 3), "failure", "", 0, offset, "F")


def cluster(decided: range, *decisions: Decision, topic_id: str = "T") -> Znodes:
    return Znodes(
        "M", "F", is_zookeeper=False, decisions={ORDERS: [*decisions]}, decided_offsets=decided,
        topic_ids={"orders": topic_id},
    )  # fmt: skip


def test_what_a_controller_appended_while_it_was_cut_off_was_never_decided() -> None:
    """Its log is of the moment before it was back, and the later log has other records at its offsets."""
    created, failed, own = decision(10, 0, 1, 1, 2), decision(20, 1, 2, 2), decision(20, 1, 3, 3)
    later = cluster(range(10, 30), created, failed)
    assert unconfirmed(cluster(range(10, 21), created, failed), later) == []
    assert unconfirmed(cluster(range(10, 21), created, own), later) == [own]
    assert unconfirmed(cluster(range(10, 22), created, decision(21, 1, 3, 3)), later) == [
        decision(21, 1, 3, 3)
    ]
    # Before the later log's snapshot, and behind its end, it says nothing.
    assert unconfirmed(cluster(range(5, 11), decision(5, 0, 3, 3)), later) == []
    assert unconfirmed(cluster(range(10, 41), decision(40, 1, 3, 3)), later) == []
    # An earlier topic of that name.
    assert unconfirmed(cluster(range(10, 21), decision(12, 0, 3, 3, topic_id="U")), later) == []

    isolated = cluster(range(10, 22), created, own, decision(21, 2, -1))
    take_back(isolated, unconfirmed(isolated, later))
    assert isolated.decisions[ORDERS] == [created]
    state = isolated.state(ORDERS)
    assert state is not None and (state.leader, state.leader_epoch, state.isr) == (1, 0, (1, 2))

    isolated = cluster(range(20, 21), own)
    take_back(isolated, unconfirmed(isolated, later))
    assert isolated.state(ORDERS) is None and ORDERS not in isolated.decisions
