"""Configurations as the brokers describe them, reduced to what was set: of topics, brokers, clients, users, ips.

Only dynamic values are kept, as a backend over ZooKeeper has them; the brokers' own files and defaults are left out.
A broker tells its own configuration and nobody else's, so that of a dead one is not to be had.
"""

from collections.abc import Collection, Sequence
from typing import Any

from kctl.cluster.state import UNTOLD, EntityConfig, Problem
from kctl.errors import KctlError
from kctl.wire.adapter import TooOld, Wire, error_name
from kctl.wire.shortcuts.configs import (
    DYNAMIC_BROKER,
    DYNAMIC_DEFAULT,
    DYNAMIC_TOPIC,
    DescribeSetConfigsRequest,
    Resource,
)

TOPIC, BROKER = 2, 4  # resource types
DEFAULT = "<default>"
TOPICS_IN_A_REQUEST = 500
QUOTA_TYPES = {"clients": "client-id", "users": "user", "ips": "ip"}
MADE_BY_KAFKA = "min.insync.replicas"  # always set as default where eligible leader replicas are in use
Found = dict[tuple[str, str], EntityConfig]


def read_configs(
    wire: Wire,
    types: Collection[str],
    topics: Sequence[str],
    brokers: Sequence[int],
    keys: Collection[str] | None = None,
) -> tuple[Found, list[Problem]]:
    """What is set for the entities of these types (None: all keys), and what could not be read."""
    found: Found = {}
    problems: list[Problem] = []
    if "topics" in types:
        for first in range(0, len(topics), TOPICS_IN_A_REQUEST):
            _topics(wire, topics[first : first + TOPICS_IN_A_REQUEST], keys, found, problems)
    if "brokers" in types:
        _brokers(wire, brokers, keys, found, problems)
    for kind in QUOTA_TYPES.keys() & set(types):
        _quotas(wire, kind, found, problems)
    return found, problems


def described(
    kind: int,
    names: Sequence[str],
    keys: Sequence[str] | None = None,
) -> DescribeSetConfigsRequest:
    """The request that describes resources of a type."""
    listed = [Resource(resource_type=kind, resource_name=name, configuration_keys=keys) for name in names]
    return DescribeSetConfigsRequest(resources=listed, include_synonyms=False, include_documentation=False)


def values_from(result: Any, sources: Collection[int]) -> dict[str, str]:
    """The keys of a described resource that come from these sources; a secret's value is an empty text."""
    return {str(c.name): c.value or UNTOLD for c in result.configs if c.config_source in sources}


def _topics(
    wire: Wire, names: Sequence[str], keys: Collection[str] | None, found: Found, problems: list[Problem]
) -> None:
    wanted = described(TOPIC, names, None if keys is None else sorted(keys))
    answer = wire.read(wanted)
    for result in answer.results:
        name = str(result.resource_name)
        if result.error_code:
            problems.append(Problem(f"configuration of topic {name}", error_name(result.error_code)))
            continue
        values = values_from(result, (DYNAMIC_TOPIC,))
        if values:
            found["topics", name] = EntityConfig(entity_type="topics", entity_name=name, values=values)


def _brokers(
    wire: Wire, ids: Sequence[int], keys: Collection[str] | None, found: Found, problems: list[Problem]
) -> None:
    asked = [id for id in ids if id in wire.nodes]
    wanted = None if keys is None else sorted(keys)
    requests = [(id, described(BROKER, [str(id)], wanted)) for id in asked]
    answers = wire.send_all([*requests, (wire.node, described(BROKER, [""], wanted))])
    names = [*map(str, asked), DEFAULT]
    for name, answer in zip(names, answers, strict=True):
        if isinstance(answer, KctlError):
            problems.append(Problem(f"configuration of broker {name}", str(answer)))
            continue
        (result,) = answer.results
        if result.error_code:
            problems.append(Problem(f"configuration of broker {name}", error_name(result.error_code)))
            continue
        values = values_from(result, (DYNAMIC_DEFAULT,) if name == DEFAULT else (DYNAMIC_BROKER,))
        if values:
            found["brokers", name] = EntityConfig(entity_type="brokers", entity_name=name, values=values)


def _quotas(wire: Wire, kind: str, found: Found, problems: list[Problem]) -> None:
    from kafka.protocol.admin.client_quotas import DescribeClientQuotasRequest

    component = DescribeClientQuotasRequest.ComponentData(
        entity_type=QUOTA_TYPES[kind], match_type=2, match=None
    )
    try:
        answer = wire.read(DescribeClientQuotasRequest(components=[component], strict=False))
    except TooOld as error:
        problems.append(Problem(f"configurations of {kind}", str(error)))
        return
    if answer.error_code:
        problems.append(Problem(f"configurations of {kind}", error_name(answer.error_code)))
        return
    for entry in answer.entries or ():
        parts = {
            str(e.entity_type): DEFAULT if e.entity_name is None else str(e.entity_name) for e in entry.entity
        }
        name = _quota_entity(kind, parts)
        if name is not None:
            values = {str(v.key): _number(v.value) for v in entry.values}
            found[kind, name] = EntityConfig(entity_type=kind, entity_name=name, values=values)


def _quota_entity(kind: str, parts: dict[str, str]) -> str | None:
    if kind == "users":
        user, client = parts.get("user"), parts.get("client-id")
        return user if client is None or user is None else f"{user}/clients/{client}"
    return parts.get(QUOTA_TYPES[kind]) if len(parts) == 1 else None


def _number(value: float) -> str:
    return str(int(value)) if float(value).is_integer() else repr(float(value))
