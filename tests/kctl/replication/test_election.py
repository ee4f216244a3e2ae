"""Elections and ISR changes of the ZooKeeper controller, against recorded decisions."""

from typing import Any

import pytest

from kctl.replication.election import (
    Elected,
    KeepLast,
    NotElected,
    Order,
    elect_controlled_shutdown,
    elect_new_partition,
    elect_offline_partition,
    elect_preferred,
    elect_reassign,
    leader_imbalance,
    remove_replica_from_isr,
)
from tests.conftest import vectors


def decision(op: str, have: dict[str, Any]) -> Elected | NotElected:
    have = dict(have)
    order = Order(have.pop("rule", Order.ASSIGNMENT_ORDER))
    if op == "elect_offline_partition":
        unclean = have.pop("unclean_leader_election_enable")
        return elect_offline_partition(**have, unclean_enabled=unclean, order=order)
    if op == "elect_controlled_shutdown":
        return elect_controlled_shutdown(**have, order=order)
    if op == "remove_replica_from_isr":
        unclean = have.pop("unclean_leader_election_enable")
        keep_last = KeepLast(have.pop("keep_last_isr_member"))
        return remove_replica_from_isr(**have, unclean_enabled=unclean, keep_last=keep_last)
    simple: dict[str, Any] = {
        "elect_new_partition": elect_new_partition,
        "elect_preferred": elect_preferred,
        "elect_reassign": elect_reassign,
    }
    found: Elected | NotElected = simple[op](**have)
    return found


@pytest.mark.parametrize("case", [pytest.param(c, id=c["id"]) for c in vectors("failover_election")["cases"]])
def test_decisions(case: dict[str, Any]) -> None:
    have, want = case["given"], case["expect"]
    if case["op"] == "leader_imbalance":
        found = leader_imbalance(
            [(p["assignment"], p["leader"]) for p in have["partitions"]],
            have["leader_imbalance_per_broker_percentage"],
        )
        for broker, expected in want["per_preferred_broker"].items():
            assert list(found[int(broker)]) == list(expected.values())
        return
    elected = decision(case["op"], have)
    if "error" in want:
        assert isinstance(elected, NotElected)
        assert (elected.why, elected.needed) == (want["error"], True)
    elif "result" in want:
        assert isinstance(elected, NotElected)
        assert not elected.needed
    else:
        assert isinstance(elected, Elected)
        got = {**elected._asdict(), "isr": list(elected.isr)}
        assert {key: got[key] for key in want} == want
