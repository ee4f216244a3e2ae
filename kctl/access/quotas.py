"""Quotas of users, clients and addresses, and which of them is in force for whom.

Each key has its own value by the first of eight levels that sets it; without one it is unlimited. Connections of an
address have two levels.

Source: core/src/main/scala/kafka/server/ClientQuotaManager.scala @ 3.9.0-rc3 (DefaultQuotaCallback), KIP-55, KIP-612
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import NamedTuple
from urllib.parse import unquote

from kctl.cluster.config_keys import IP_KEYS, QUOTA_KEYS
from kctl.cluster.state import DEFAULT, ClusterState
from kctl.errors import BadValue

QUOTA_NAMES = tuple(dict.fromkeys(key.name for key in (*QUOTA_KEYS, *IP_KEYS)))
TYPES = ("users", "clients", "ips")


def entity_of(user: str | None, client_id: str | None, ip: str | None) -> tuple[str, str]:
    """Type and name of the configuration that holds the quotas of somebody. Raises BadValue."""
    if ip is not None and (user is not None or client_id is not None):
        raise BadValue("an address has quotas of its own", "give --ip alone")
    if ip is not None:
        return "ips", ip
    if user is None and client_id is None:
        raise BadValue(
            "nobody is named", "give --user, --client-id or both, or --ip; <default> is everybody else"
        )
    if user is None:
        return "clients", client_id or ""
    return "users", user if client_id is None else f"{user}/clients/{client_id}"


class Quota(NamedTuple):
    """A value of a quota: for whom (None: it is not about that, `<default>`: all without their own), which, how much."""

    user: str | None
    client_id: str | None
    ip: str | None
    key: str
    value: float | None
    source: str | None  # the level
    why: str | None = None  # nobody knows the value


LEVELS = (
    "user and client-id",
    "user and default client-id",
    "user",
    "default user and client-id",
    "default user and default client-id",
    "default user",
    "client-id",
    "default client-id",
)
"""The levels in the order in which they are looked at."""


def level_of(user: str | None, client_id: str | None, ip: str | None) -> str:
    """The level of an entity in words."""
    parts = (("user", user), ("client-id", client_id), ("ip", ip))
    return " and ".join(
        f"default {kind}" if name == DEFAULT else kind for kind, name in parts if name is not None
    )


def why_unknown(state: ClusterState, *types: str) -> str | None:
    """Why the quotas of these types of entities are not known; None if they were read."""
    return state.why_not_read(*(f"configurations of {kind}" for kind in types))


def quotas_in(state: ClusterState) -> Iterator[Quota]:
    """Every quota that is set, by entity and key; other configuration of users is none."""
    for (kind, name), config in sorted(state.configs.items()):
        if kind not in TYPES:
            continue
        user, client_id, ip = _entity(kind, name)
        for key, value in sorted(config.values.items()):
            if key in QUOTA_NAMES and (number := _number(value)) is not None:
                yield Quota(user, client_id, ip, key, number, level_of(user, client_id, ip))


def _entity(kind: str, name: str) -> tuple[str | None, str | None, str | None]:
    if kind == "ips":
        return None, None, name
    if kind == "clients":
        return None, unquote(name), None
    user, separator, client = name.partition("/clients/")
    return unquote(user), unquote(client) if separator else None, None


def _number(text: str) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return None
    return int(value) if value.is_integer() else value


def in_force(
    quotas: Iterable[Quota],
    *,
    user: str | None,
    client_id: str | None,
    ip: str | None,
    why_unknown: Callable[..., str | None] = lambda *_: None,
) -> Iterator[Quota]:
    """For each key the value in force, with its level; without one the value is None: unlimited.

    `why_unknown`: why the quotas of types of entities were not read; then every level is unknown.
    `user` is None for a connection without a login: Kafka then looks at client ids alone, as for user `ANONYMOUS`.
    """
    by_level: dict[tuple[str | None, str | None, str | None], dict[str, Quota]] = {}
    for quota in quotas:
        by_level.setdefault((quota.user, quota.client_id, quota.ip), {})[quota.key] = quota
    name = user or "ANONYMOUS"
    client = client_id or ""
    levels = [
        (name, client, None), (name, DEFAULT, None), (name, None, None),
        (DEFAULT, client, None), (DEFAULT, DEFAULT, None), (DEFAULT, None, None),
        (None, client, None), (None, DEFAULT, None),
    ]  # fmt: skip
    for key in dict.fromkeys(key.name for key in QUOTA_KEYS):
        unlimited = Quota(user, client_id, None, key, None, None, why_unknown("users", "clients"))
        yield _first(by_level, levels, key, unlimited)
    if ip is not None:
        places: list[tuple[str | None, str | None, str | None]] = [(None, None, ip), (None, None, DEFAULT)]
        for key in dict.fromkeys(key.name for key in IP_KEYS):
            yield _first(by_level, places, key, Quota(None, None, ip, key, None, None, why_unknown("ips")))


def _first(
    by_level: Mapping[tuple[str | None, str | None, str | None], Mapping[str, Quota]],
    levels: Iterable[tuple[str | None, str | None, str | None]],
    key: str,
    unlimited: Quota,
) -> Quota:
    for level in levels if unlimited.why is None else ():
        if (quota := by_level.get(level, {}).get(key)) is not None:
            return unlimited._replace(value=quota.value, source=quota.source)
    return unlimited
