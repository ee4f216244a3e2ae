"""The eight levels of quotas, in Kafka's order."""

from __future__ import annotations

from functools import partial
from types import SimpleNamespace
from typing import cast

from commands.access.quota import in_force_text
from commands.cli.render import Page
from kctl.access.quotas import LEVELS, Quota, in_force, level_of, why_unknown
from kctl.cluster.state import ClusterState, Problem
from kctl.cluster.versions import KafkaVersion
from kctl.rows.access import QUOTA

D = "<default>"
ENTITIES = [("a", "c"), ("a", D), ("a", None), (D, "c"), (D, D), (D, None), (None, "c"), (None, D)]


def quota(user: str | None, client: str | None, value: int, key: str = "producer_byte_rate") -> Quota:
    return Quota(user, client, None, key, value, level_of(user, client, None))


def test_the_first_level_that_sets_a_key_decides() -> None:
    assert tuple(level_of(user, client, None) for user, client in ENTITIES) == LEVELS
    quotas = [quota(user, client, number) for number, (user, client) in enumerate(ENTITIES)]
    for number in range(len(quotas)):
        first, *others = in_force(quotas[number:], user="a", client_id="c", ip=None)
        assert (first.value, first.source) == (number, LEVELS[number])
        assert all(other.value is None for other in others)


def test_keys_are_looked_at_one_by_one_and_others_do_not_count() -> None:
    quotas = [
        quota("a", "c", 1),
        quota("b", None, 2),
        quota(None, "d", 3),
        quota("a", None, 4, "consumer_byte_rate"),
    ]
    values = {q.key: (q.value, q.source) for q in in_force(quotas, user="a", client_id="c", ip=None)}
    assert values["producer_byte_rate"] == (1, "user and client-id")
    assert values["consumer_byte_rate"] == (4, "user")
    assert values["request_percentage"] == (None, None)
    assert all(q.value is None for q in in_force(quotas[1:3], user="a", client_id="c", ip=None))


def test_what_was_not_read_is_not_unlimited() -> None:
    state = ClusterState(
        cluster_id=None, kafka_version=KafkaVersion(4, 0), brokers={}, controller=None,
        problems=(Problem("configurations of clients", "denied"),),
    )  # fmt: skip
    why = partial(why_unknown, state)
    *listed, of_address = in_force([], user="a", client_id="c", ip="10.0.0.1", why_unknown=why)
    reason = "configurations of clients: denied"  # a level that nobody has seen may be the one that decides
    assert {(each.value, each.source, each.why) for each in listed} == {(None, None, reason)}
    assert (of_address.value, of_address.why) == (None, None)
    rows = [QUOTA(**each._asdict()) for each in listed]
    page = cast(Page, SimpleNamespace(style=lambda text, _: text))
    assert all(line.endswith("  unknown") for line in in_force_text(rows, page))


def test_addresses() -> None:
    quotas = [Quota(None, None, D, "connection_creation_rate", 7, level_of(None, None, D))]
    *_, last = in_force(quotas, user="a", client_id="c", ip="10.0.0.1")
    assert (last.ip, last.key, last.value, last.source) == (
        "10.0.0.1",
        "connection_creation_rate",
        7,
        "default ip",
    )
