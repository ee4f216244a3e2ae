"""Configurations of topics, brokers, loggers and other resources, and quotas: their keys set, unset and added to.

Source: clients/src/main/resources/common/message/{IncrementalAlterConfigs,AlterClientQuotas}Request.json @ 4.3.0
(KIP-339, KIP-546)
"""

from collections.abc import Collection, Iterator, Mapping
from typing import ClassVar
from urllib.parse import unquote

from formats.values import Struct
from formats.whole_numbers import whole_number
from kctl.changes.kinds.configs import AlterConfig
from kctl.changes.kinds.throttles import LISTS, RATES, ClearThrottle, clearing_changes, rates_of_dead, split
from kctl.cluster.config_keys import BROKERS_ONLY, KEPT_BY_EACH_BROKER
from kctl.cluster.interface import refuse_changed
from kctl.cluster.rights import GROUP, RESOURCES
from kctl.cluster.state import NOT_RETURNED, ClusterState
from kctl.errors import KctlError, Refused
from kctl.model import Json
from kctl.wire.adapter import Wire
from kctl.wire.answers.configs import KINDS
from kctl.wire.protocol.messages import AlterClientQuotasRequest, IncrementalAlterConfigsRequest
from kctl.wire.reading import DEFAULT, QUOTA_TYPES
from kctl.wire.writes.present import existing
from kctl.wire.writes.requests import Line, Request, RequestItem, ask, ask_leader, line

OPERATIONS = {"SET": 0, "DELETE": 1, "APPEND": 2, "SUBTRACT": 3}


class ConfigOperation(Struct, frozen=True, omit_defaults=True):
    """What becomes of a key; DELETE has no value."""

    key: str
    operation: str
    value: str | None = None

    def is_shown(self, present: str | None) -> bool:
        """Whether a value is what this asks for."""
        items, named = set((present or "").split(",")), set((self.value or "").split(","))
        return {
            "SET": present in (self.value, NOT_RETURNED),
            "DELETE": present is None,
            "APPEND": named <= items,
            "SUBTRACT": not named & items,
        }[self.operation]

    @property
    def outcome(self) -> str | None:
        """What it makes of the value, for people."""
        signs = {"DELETE": "(not set)", "APPEND": f"+{self.value}", "SUBTRACT": f"-{self.value}"}
        return signs.get(self.operation, self.value)


class KnownConfigs(Struct, frozen=True):
    """The values that a request was computed from; None for a key that was not set."""

    configs: Mapping[str, str | None]


class ConfigRequest(Request, frozen=True, kw_only=True):
    """The keys of one entity, all of them or none."""

    expected: KnownConfigs | None = None
    entity_type: str
    entity_name: str
    configs: tuple[ConfigOperation, ...]

    def topics(self) -> set[str]:
        return {self.entity_name} if self.entity_type == "topics" else set()

    def config_types(self) -> Collection[str]:
        return (self.entity_type,)

    def resource(self, item: RequestItem) -> str:
        is_named = self.entity_type == "topics" or RESOURCES.get(item.error_code) == GROUP
        return super().resource(item) or (self.entity_name if is_named else "")

    def refuse_other_state(self, state: ClusterState) -> None:
        if self.expected is not None:
            of = (self.entity_type, self.entity_name)
            refuse_changed(*of, self.expected.configs, state.config(*of))

    def is_shown(self, state: ClusterState) -> bool:
        of = (self.entity_type, self.entity_name)
        if state.why_unread(*of) is not None:
            return False
        present = state.config(*of)
        return all(config.is_shown(present.get(config.key)) for config in self.configs)

    def can_be_told(self, state: ClusterState) -> bool:
        before = self.expected.configs if self.expected else {}
        present = state.config(self.entity_type, self.entity_name)
        return not any(
            before.get(config.key) == NOT_RETURNED and state.is_not_returned(present.get(config.key))
            for config in self.configs
        )

    def lines_of(self, field: str, value: Json) -> Iterator[Line]:
        if field != "configs":
            yield from super().lines_of(field, value)
            return
        before = self.expected.configs if self.expected else {}
        for config in self.configs:
            yield line(config.key, before.get(config.key), config.outcome)


class IncrementalAlterConfigs(ConfigRequest, frozen=True, kw_only=True):
    """The keys of a topic, a broker or another resource; those of a dead broker take the controller's own listener."""

    is_validated: ClassVar[bool] = True
    at_controller: bool = False

    def send(self, wire: Wire, validate_only: bool) -> Iterator[RequestItem]:
        name, is_topic = self.entity_name, self.entity_type == "topics"
        kind = IncrementalAlterConfigsRequest.AlterConfigsResource
        resource = kind(
            resource_type=KINDS[self.entity_type].resource,
            resource_name="" if name == DEFAULT else name,
            configs=[
                kind.AlterableConfig(
                    name=config.key, config_operation=OPERATIONS[config.operation], value=config.value
                )
                for config in self.configs
            ],
        )
        request = IncrementalAlterConfigsRequest(resources=[resource], validate_only=validate_only)
        node = int(name) if self.entity_type in KEPT_BY_EACH_BROKER and name != DEFAULT else None
        answer = ask_leader(wire, request) if self.at_controller else ask(wire, request, node)
        for result in answer.responses:
            what = f"{self.entity_type.removesuffix('s')} {name}"
            yield RequestItem(what, result.error_code, result.error_message, name if is_topic else None)

    def dead_brokers(self) -> Collection[int]:
        return (int(self.entity_name),) if self.at_controller else ()

    # No broker returns the configuration of a dead one.

    def is_shown(self, state: ClusterState) -> bool:
        return not self.at_controller and super().is_shown(state)

    def can_be_told(self, state: ClusterState) -> bool:
        return not self.at_controller and super().can_be_told(state)

    def shows_at_once(self, state: ClusterState) -> bool:
        return not self.at_controller


class AlterClientQuotas(ConfigRequest, frozen=True, kw_only=True):
    """The quotas of a user, a client or an address."""

    def send(self, wire: Wire, validate_only: bool) -> Iterator[RequestItem]:
        kind = AlterClientQuotasRequest.EntryData
        entry = kind(
            entity=[
                kind.EntityData(entity_type=type, entity_name=name)
                for type, name in _components(self.entity_type, self.entity_name)
            ],
            ops=[
                kind.OpData(
                    key=config.key, value=float(config.value or 0), remove=config.operation == "DELETE"
                )
                for config in self.configs
            ],
        )
        request = AlterClientQuotasRequest(entries=[entry], validate_only=validate_only)
        for result in ask(wire, request).entries:
            yield RequestItem(
                f"{self.entity_type} {self.entity_name}", result.error_code, result.error_message
            )


def _components(kind: str, name: str) -> list[tuple[str, str | None]]:
    user, separator, client = name.partition("/clients/")
    parts = [("user", user), ("client-id", client)] if separator else [(QUOTA_TYPES[kind], name)]
    # Brokers encode names themselves.
    return [(type, None if part == DEFAULT else unquote(part)) for type, part in parts]


# --- requests of intents ------------------------------------------------------------------------------


def alter_config(fresh: ClusterState, intent: AlterConfig, _: ClusterState) -> list[Request]:
    """The keys of one entity; nothing of a logger's that a restart has reset."""
    if intent.entity_type == "broker-loggers" and is_in_force(fresh, intent):
        return []
    return [config_request(fresh, intent)]


def clear_throttle(fresh: ClusterState, intent: ClearThrottle, _: ClusterState) -> list[Request]:
    """The configurations without a reassignment's throttles, where they are still set; dead brokers last."""
    requests = [config_request(fresh, change) for change in clearing_changes(intent, fresh)]
    for broker, rates in rates_of_dead(intent, fresh).items() if fresh.quorum is not None else ():
        change = AlterConfig(entity_type="brokers", entity_name=str(broker), after=rates, before={})
        of_dead = IncrementalAlterConfigs(
            about=f"broker {broker}, by the controller",
            entity_type="brokers",
            entity_name=str(broker),
            configs=operations(change),
            at_controller=True,
        )
        requests.append(of_dead)
    return requests


def config_request(fresh: ClusterState, change: AlterConfig) -> Request:
    """The keys of one entity. Raises Conflict where they are not as read, Refused where nobody can apply them."""
    kind, name = change.entity_type, change.entity_name
    if (problem := fresh.unread_config(kind, name)) is not None:
        raise KctlError(
            f"{problem.place}: {problem.reason}; nothing was written",
            problem.hint
            if problem.right is not None
            else "kctl compares a value before it changes it: try again",
        )
    if kind == "topics":
        existing(fresh, name)
    elif kind in KEPT_BY_EACH_BROKER and (id := whole_number(name)) is not None and not fresh.is_alive(id):
        raise Refused(
            f"broker {name} is not alive, and only the broker itself can apply its configuration; nothing was written",
            f"start broker {name}"
            + (", or set the entity `<default>`, which applies to all" if kind == "brokers" else ""),
        )
    refuse_changed(kind, name, change.before, fresh.config(kind, name))
    request: type[ConfigRequest] = (
        IncrementalAlterConfigs if kind in ("topics", "brokers", *BROKERS_ONLY) else AlterClientQuotas
    )
    return request(
        about=f"{kind.removesuffix('s')} {name}",
        expected=KnownConfigs(dict(change.before)),
        entity_type=kind,
        entity_name=name,
        configs=operations(change),
    )


def operations(change: AlterConfig) -> tuple[ConfigOperation, ...]:
    """The operation on each key. Throttled replicas are appended and subtracted, so that those of others stay."""
    return tuple(
        _operation(key, change.before.get(key), value) for key, value in sorted(change.after.items())
    )


def _operation(key: str, was: str | None, value: str | None) -> ConfigOperation:
    if value is None or (value == NOT_RETURNED and key in RATES):  # an unknown value cannot be restored
        return ConfigOperation(key, "DELETE")
    if key in LISTS and was:
        previous, current = split(was), split(value)
        added = [item for item in current if item not in previous]
        gone = [item for item in previous if item not in current]
        if bool(added) != bool(gone):
            return ConfigOperation(key, "APPEND" if added else "SUBTRACT", ",".join(added or gone))
    return ConfigOperation(key, "SET", value)


def is_in_force(state: ClusterState, change: AlterConfig) -> bool:
    """Whether the change is in force already, as after a stage that was cut off between its requests.

    So is a value that brokers do not return, if none was set when the change was planned.
    """
    present = state.config(change.entity_type, change.entity_name)
    return all(
        present.get(key) == value
        or (value is not None and change.before.get(key) is None and state.is_not_returned(present.get(key)))
        for key, value in change.after.items()
    )
