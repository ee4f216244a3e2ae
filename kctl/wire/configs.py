"""Configurations as brokers describe them: values in force and their sources; loggers, groups, client metrics.

Source: KIP-226 (sources, synonyms), KIP-412 (broker loggers), KIP-714 (client metrics), KIP-848 (groups), KIP-1142
(ListConfigResources); clients/src/main/resources/common/message/{DescribeConfigs,ListConfigResources}*.json @ 4.3.0
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from operator import attrgetter
from typing import Any, NamedTuple

from kctl.cluster.config_keys import KEPT_BY_EACH_BROKER
from kctl.cluster.names import unknown_topics
from kctl.cluster.requests import SINCE, needs
from kctl.cluster.state import DEFAULT, EntityConfig, Problem, unread
from kctl.cluster.versions import parse_version
from kctl.errors import KctlError
from kctl.wire.adapter import BrokerError, TooOld, Wire
from kctl.wire.answers.configs import KINDS, DescribeConfigsInForceRequest
from kctl.wire.protocol.messages import DescribeConfigsRequest, ListConfigResourcesRequest
from kctl.wire.rights import failure

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
    """A key of an entity in force; `value` is None if the broker does not return it."""

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
    """The keys of each entity (all if none are named), sorted; an error if an entity is not described.

    Equal keys of several entities are the same object.
    """
    made: dict[str, tuple[Any, ConfigInForce]] = {}  # by key: the last description, and the result
    for first in range(0, len(names), ENTITIES_IN_A_REQUEST):
        batch = names[first : first + ENTITIES_IN_A_REQUEST]
        answers = _answers(wire, kind, batch, sorted(keys) or None, explain)
        for name, answer in zip(batch, answers, strict=True):
            if isinstance(answer, KctlError):
                yield name, answer
                continue
            listed = []
            for config in sorted(answer.configs, key=NAME):
                previous = made.get(config.name)
                if previous is None or previous[0] is not config:
                    previous = made[config.name] = config, _config(config)
                listed.append(previous[1])
            yield name, listed


def _config(config: Any) -> ConfigInForce:
    return ConfigInForce(
        str(config.name),
        config.value,
        SOURCES.get(config.config_source),
        bool(config.is_sensitive),
        bool(config.read_only),
        TYPES.get(getattr(config, "config_type", 0)),
        tuple(
            {"key": str(synonym.name), "value": synonym.value, "source": SOURCES.get(synonym.source)}
            for synonym in config.synonyms or ()
        ),
        getattr(config, "documentation", None) or None,
    )


def _answers(
    wire: Wire, kind: str, names: Sequence[str], keys: Sequence[str] | None, explain: bool
) -> list[Any | KctlError]:
    """The description of each entity, or the error in its place."""

    def request(names: Iterable[str]) -> DescribeConfigsRequest:
        resource = DescribeConfigsRequest.DescribeConfigsResource
        listed = [
            resource(
                resource_type=KINDS[kind].resource,
                resource_name="" if name == DEFAULT else name,
                configuration_keys=keys,
            )
            for name in names
        ]
        return DescribeConfigsInForceRequest(
            resources=listed, include_synonyms=True, include_documentation=explain, min_version=1
        )

    if kind in KEPT_BY_EACH_BROKER:
        requests = [(wire.node if name == DEFAULT else int(name), request([name])) for name in names]
        answers = wire.send_all(requests)
        results_by_name = {
            name: answer if isinstance(answer, KctlError) else answer.results[0]
            for name, answer in zip(names, answers, strict=True)
        }
    else:  # unauthorized ones come last
        results = wire.read(request(names)).results if names else ()
        results_by_name = {str(result.resource_name): result for result in results}
    missing = BrokerError("the answer does not include it")
    return [_result(wire, kind, name, results_by_name.get(name, missing)) for name in names]


def _result(wire: Wire, kind: str, name: str, result: Any) -> Any:
    if isinstance(result, KctlError) or not result.error_code:
        return result
    what = f"configuration of {kind}"
    if what in SINCE and wire.broker_version[:2] < parse_version(SINCE[what][0])[:2]:
        return TooOld(f"the brokers are too old: {needs(what)}")
    if kind == "topics" and result.error_code == UNKNOWN_TOPIC:
        return unknown_topics([name], ())
    place = f"configuration of {kind.removesuffix('s')} {name}"
    return failure(wire, place, "DescribeConfigs", result.error_code, name, result.error_message)


def names_of(wire: Wire, kind: str) -> list[str]:
    """The groups or subscriptions of client metrics that have a configuration. Raises KctlError.

    Raises TooOld if brokers do not list them.
    """
    version = wire.version_of(ListConfigResourcesRequest)
    if version is None or (kind == "groups" and version < 1):
        raise TooOld(
            f"the brokers are too old: {needs(f'listing configurations of {kind}')}",
            "name one with --entity-name",
        )
    resource = KINDS[kind].resource
    filters = {"resource_types": [resource]} if version >= 1 else {}
    answer = wire.read(ListConfigResourcesRequest(**filters))
    if answer.error_code:
        raise failure(wire, f"configurations of {kind}", "ListConfigResources", answer.error_code)
    return sorted(
        str(resource_config.resource_name)
        for resource_config in answer.config_resources
        if getattr(resource_config, "resource_type", resource) == resource
    )


def read_set(
    wire: Wire, kind: str, names: Sequence[str]
) -> tuple[dict[tuple[str, str], EntityConfig], list[Problem]]:
    """The values set for groups or client metrics, the levels of all loggers of brokers, and what could not be read.

    Brokers do not tell a level that was set from one of their own file, or from the root's.
    """
    values: dict[str, dict[str, str]] = {}
    problems = []
    answers: list[Any | KctlError]
    try:
        answers = _answers(wire, kind, names, None, False)
    except TooOld as error:
        return {}, [Problem(f"configurations of {kind}", error.message)]
    for name, answer in zip(names, answers, strict=True):
        if isinstance(answer, KctlError):
            problems.append(unread(f"configuration of {kind.removesuffix('s')} {name}", answer))
            continue
        values[name] = {
            str(config.name): config.value or ""
            for config in answer.configs
            if config.config_source == KINDS[kind].source
        }
    configs = {
        (kind, name): EntityConfig(entity_type=kind, entity_name=name, values=entries)
        for name, entries in values.items()
        if entries
    }
    return configs, problems


def keys_known(wire: Wire, kind: str, name: str) -> dict[str, str | None]:
    """The keys that an entity can have, with their types, as a broker lists them. Raises KctlError."""
    entity = str(wire.node) if kind == "brokers" and name == DEFAULT else name
    ((_, configs),) = in_force(wire, kind, [entity])
    if isinstance(configs, KctlError):
        raise configs
    # A key that is set but unknown to brokers is listed too, without a type.
    types = {
        config.key: config.type for config in configs if config.type is not None or not config.is_sensitive
    }
    if kind == "client-metrics" and not types:  # not set: brokers before 4.0 then list no key
        return dict.fromkeys(CLIENT_METRICS)
    return types
