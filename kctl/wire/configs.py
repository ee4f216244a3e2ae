"""Configurations as brokers tell them: what is in force and where it comes from; loggers, groups, client metrics.

Source: KIP-226 (sources, synonyms), KIP-412 (broker loggers), KIP-714 (client metrics), KIP-848 (groups), KIP-1142
(ListConfigResources); clients/src/main/resources/common/message/{DescribeConfigs,ListConfigResources}*.json @ 4.3.0
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from operator import attrgetter
from typing import Any, NamedTuple

from kafka.protocol.admin.configs import DescribeConfigsRequest, ListConfigResourcesRequest

from kctl.cluster.names import unknown_topics
from kctl.cluster.state import DEFAULT, EntityConfig, Problem
from kctl.cluster.versions import SINCE, needs, parse_version
from kctl.errors import KctlError
from kctl.wire.adapter import BrokerError, TooOld, Wire, error_name
from kctl.wire.shortcuts.configs import AT_THE_BROKER, KINDS, DescribeConfigsInForceRequest

NAME = attrgetter("name")
UNKNOWN_TOPIC = 3
ENTITIES_IN_A_REQUEST = 200
CLIENT_METRICS = ("interval.ms", "match", "metrics")


SOURCES = {
    1: "topic", 2: "broker", 3: "default_broker", 4: "static", 5: "default", 6: "broker_logger", 7: "client_metrics",
    8: "group",
}  # fmt: skip
TYPES = {
    1: "boolean", 2: "string", 3: "int", 4: "short", 5: "long", 6: "double", 7: "list", 8: "class", 9: "password",
}  # fmt: skip


class ConfigInForce(NamedTuple):
    """A key of an entity as it holds now; `value` is None where the broker keeps it to itself."""

    key: str
    value: str | None
    source: str | None
    is_sensitive: bool
    is_read_only: bool
    type: str | None
    synonyms: tuple[Mapping[str, str | None], ...]  # key, value, source; in order of force
    documentation: str | None


def in_force(
    wire: Wire, kind: str, names: Sequence[str], keys: Collection[str] = (), *, explain: bool = False
) -> Iterator[tuple[str, list[ConfigInForce] | KctlError]]:
    """Every key of the entities (of none named: all keys), by entity and key; an error where one does not tell.

    What is the same in many entities is the same object.
    """
    made: dict[str, tuple[Any, ConfigInForce]] = {}  # by key, as it was told last
    for first in range(0, len(names), ENTITIES_IN_A_REQUEST):
        some = names[first : first + ENTITIES_IN_A_REQUEST]
        answers = _answers(wire, kind, some, sorted(keys) or None, explain)
        for name, answer in zip(some, answers, strict=True):
            if isinstance(answer, KctlError):
                yield name, answer
                continue
            listed = []
            for one in sorted(answer.configs, key=NAME):
                known = made.get(one.name)
                if known is None or known[0] is not one:
                    known = made[one.name] = one, _config(one)
                listed.append(known[1])
            yield name, listed


def _config(one: Any) -> ConfigInForce:
    return ConfigInForce(
        str(one.name),
        one.value,
        SOURCES.get(one.config_source),
        bool(one.is_sensitive),
        bool(one.read_only),
        TYPES.get(getattr(one, "config_type", 0)),
        tuple(
            {"key": str(s.name), "value": s.value, "source": SOURCES.get(s.source)}
            for s in one.synonyms or ()
        ),
        getattr(one, "documentation", None) or None,
    )


def _answers(
    wire: Wire, kind: str, names: Sequence[str], keys: Sequence[str] | None, explain: bool
) -> list[Any | KctlError]:
    """What is told of each entity: the broker's own part of an answer, or why there is none."""

    def request(some: Iterable[str]) -> DescribeConfigsRequest:
        resource = DescribeConfigsRequest.DescribeConfigsResource
        listed = [
            resource(
                resource_type=KINDS[kind].resource,
                resource_name="" if name == DEFAULT else name,
                configuration_keys=keys,
            )
            for name in some
        ]
        return DescribeConfigsInForceRequest(
            resources=listed, include_synonyms=True, include_documentation=explain, min_version=1
        )

    if kind in AT_THE_BROKER:
        asked = [(wire.node if name == DEFAULT else int(name), request([name])) for name in names]
        answers = wire.send_all(asked)
        found = {
            name: answer if isinstance(answer, KctlError) else answer.results[0]
            for name, answer in zip(names, answers, strict=True)
        }
    else:  # those that may not be seen come last
        results = wire.read(request(names)).results if names else ()
        found = {str(result.resource_name): result for result in results}
    missing = BrokerError("the answer does not include it")
    return [_result(wire, kind, name, found.get(name, missing)) for name in names]


def _result(wire: Wire, kind: str, name: str, result: Any) -> Any:
    if isinstance(result, KctlError) or not result.error_code:
        return result
    what = f"configuration of {kind}"
    if what in SINCE and wire.broker_version[:2] < parse_version(SINCE[what][0])[:2]:
        return TooOld(f"the brokers are too old: {needs(what)}")
    if kind == "topics" and result.error_code == UNKNOWN_TOPIC:
        return unknown_topics([name], ())
    said = (result.error_message or "").rstrip(".") or error_name(result.error_code)
    return BrokerError(f"configuration of {kind.removesuffix('s')} {name}: {said}")


def names_of(wire: Wire, kind: str) -> list[str]:
    """The groups or subscriptions of client metrics that have a configuration. Raises KctlError.

    Raises TooOld where brokers do not list them.
    """
    version = wire.version_of(ListConfigResourcesRequest)
    if version is None or (kind == "groups" and version < 1):
        raise TooOld(
            f"the brokers are too old: {needs(f'listing configurations of {kind}')}",
            "name one with --entity-name",
        )
    resource = KINDS[kind].resource
    asked = {"resource_types": [resource]} if version >= 1 else {}
    answer = wire.read(ListConfigResourcesRequest(**asked))
    if answer.error_code:
        raise BrokerError(f"configurations of {kind} cannot be listed: {error_name(answer.error_code)}")
    return sorted(
        str(one.resource_name)
        for one in answer.config_resources
        if getattr(one, "resource_type", resource) == resource
    )


def read_set(
    wire: Wire, kind: str, names: Sequence[str]
) -> tuple[dict[tuple[str, str], EntityConfig], list[Problem]]:
    """What is set for loggers of brokers, groups or client metrics, and what could not be read."""
    values: dict[str, dict[str, str]] = {}
    problems = []
    answers: list[Any | KctlError]
    try:
        answers = _answers(wire, kind, names, None, False)
    except TooOld as error:
        return {}, [Problem(f"configurations of {kind}", error.message)]
    for name, answer in zip(names, answers, strict=True):
        if isinstance(answer, KctlError):
            problems.append(Problem(f"configuration of {kind.removesuffix('s')} {name}", answer.message))
            continue
        values[name] = {
            str(one.name): one.value or ""
            for one in answer.configs
            if one.config_source == KINDS[kind].source
        }
    found = {
        (kind, name): EntityConfig(entity_type=kind, entity_name=name, values=some)
        for name, some in values.items()
        if some
    }
    return found, problems


def keys_known(wire: Wire, kind: str, name: str) -> dict[str, str | None]:
    """The keys that an entity can have, with their types, as a broker lists them. Raises KctlError."""
    asked = str(wire.node) if kind == "brokers" and name == DEFAULT else name
    ((_, told),) = in_force(wire, kind, [asked])
    if isinstance(told, KctlError):
        raise told
    # A key that somebody has set and no broker knows is listed too, without a type.
    found = {one.key: one.type for one in told if one.type is not None or not one.is_sensitive}
    if kind == "client-metrics" and not found:  # nobody has set it: brokers before 4.0 then tell of no key
        return dict.fromkeys(CLIENT_METRICS)
    return found
