"""Rules over the Admin protocol: read, created, deleted; and the authorizer's settings that brokers tell.

Source: clients/src/main/resources/common/message/{DescribeAcls,CreateAcls,DeleteAcls}Request.json @ 4.3.0 (KIP-140, KIP-290);
core/src/main/scala/kafka/server/ConfigHelper.scala @ 3.9.0-rc3 (keys of unknown type are not told)
"""

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any, ClassVar, NamedTuple, Self

from kctl.access.acl import (
    OPERATIONS,
    PATTERN_TYPES,
    PERMISSIONS,
    RESOURCE_TYPES,
    Acl,
    Resource,
    number_of,
    sorted_acls,
)
from kctl.access.authorizer import AuthorizerSettings
from kctl.access.forecast import Uses
from kctl.access.view import RULES, SETTINGS, AccessView, NoAuthorizer, agreed, settings_of
from kctl.changes.kinds.access import AlterAcls
from kctl.cluster.intent import Intent
from kctl.cluster.interface import Conflict
from kctl.cluster.state import ClusterState, Problem, unread
from kctl.errors import KctlError
from kctl.model import Json
from kctl.wire.access import Access
from kctl.wire.adapter import Wire
from kctl.wire.configs import in_force
from kctl.wire.groups import read_all_groups
from kctl.wire.protocol.messages import CreateAclsRequest, DeleteAclsRequest, DescribeAclsRequest
from kctl.wire.rights import failure
from kctl.wire.writes.requests import Line, Quantifier, Request, RequestItem, WireCluster, ask

ANY = 1
ANONYMOUS = "User:ANONYMOUS"
INTER_BROKER_LISTENER, INTER_BROKER_PROTOCOL = "inter.broker.listener.name", "security.inter.broker.protocol"
PROTOCOLS = "listener.security.protocol.map"
SECURITY_DISABLED = 54
FILTER: dict[str, Any] = {
    "resource_type_filter": ANY,
    "resource_name_filter": None,
    "pattern_type_filter": ANY,
    "principal_filter": None,
    "host_filter": None,
    "operation": ANY,
    "permission_type": ANY,
}


def read_acls(wire: Wire) -> list[Acl]:
    """Every rule. Raises NoAuthorizer, KctlError."""
    answer = wire.read(DescribeAclsRequest(**FILTER))
    if answer.error_code == SECURITY_DISABLED:
        raise NoAuthorizer
    if answer.error_code:
        raise failure(wire, RULES, "DescribeAcls", answer.error_code, "", answer.error_message)
    return [
        Acl.numbered(
            resource.resource_type,
            str(resource.resource_name),
            getattr(resource, "pattern_type", None) or 3,
            str(rule.principal),
            str(rule.host),
            rule.operation,
            rule.permission_type,
        )
        for resource in answer.resources
        for rule in resource.acls
    ]


def read_settings(wire: Wire, state: ClusterState, problems: list[Problem]) -> AuthorizerSettings:
    """What all live brokers tell of their authorizer; what one does not tell, or where they differ, is not known."""
    brokers = sorted(state.live_brokers)
    listed = []
    for name, configs in in_force(wire, "brokers", [str(broker) for broker in brokers], SETTINGS):
        where = f"broker {name}"
        if isinstance(configs, KctlError):
            problem = unread(f"configuration of {where}", configs)
            problems.append(problem)
            whose = where if problem.right is None else "the brokers"  # none of them tells
            unknown = tuple(f"{key} of {whose}: {problem.reason}" for key in SETTINGS[1:])
            listed.append(AuthorizerSettings(super_users=None, allow_everyone=None, unknown=unknown))
        else:
            listed.append(settings_of({config.key: config.value for config in configs}, where))
    return agreed(listed)


def own_principal(access: Access) -> str | None:
    """Whom brokers take this connection for; None where a certificate, a ticket or a token tells."""
    mechanism = access.sasl_mechanism or ""
    if mechanism == "PLAIN" or mechanism.startswith("SCRAM-"):
        return f"User:{access.sasl_username}"
    if mechanism or access.tls_certificate:
        return None
    return ANONYMOUS


def broker_principal(wire: Wire, state: ClusterState) -> str | None:
    """Whom brokers take each other for; None where it is not to be seen: with passwords, tickets or certificates."""
    keys = (INTER_BROKER_LISTENER, INTER_BROKER_PROTOCOL, PROTOCOLS)
    protocols = set()
    for _, configs in in_force(wire, "brokers", [str(broker) for broker in sorted(state.live_brokers)], keys):
        if isinstance(configs, KctlError):
            return None
        values = {config.key: config.value or "" for config in configs}
        by_listener = dict(part.strip().partition(":")[::2] for part in values.get(PROTOCOLS, "").split(","))
        listener = values.get(INTER_BROKER_LISTENER) or values.get(INTER_BROKER_PROTOCOL) or "PLAINTEXT"
        protocols.add(by_listener.get(listener, listener))
    return ANONYMOUS if protocols == {"PLAINTEXT"} else None


def read_uses(wire: Wire, problems: list[Problem]) -> Uses:
    """The groups with members, and the topics that they read. Groups that are not listed are a problem."""
    try:
        groups = read_all_groups(wire)
    except KctlError as error:
        problems.append(unread("groups", error))
        return Uses()
    by_topic: dict[str, set[str]] = {}
    connected = {}
    for group in groups:
        if group.members:
            connected[group.group] = tuple(
                sorted({member.client_host.lstrip("/") for member in group.members})
            )
        for member in group.members:
            assigned = {tp.topic for tp in member.assignment or ()}
            for topic in assigned | set(member.subscription or ()):
                by_topic.setdefault(topic, set()).add(group.group)
    return Uses(
        groups=tuple(group.group for group in groups),
        groups_by_topic={topic: tuple(sorted(names)) for topic, names in by_topic.items()},
        connected=connected,
    )


def read_access(cluster: WireCluster, *, rules_only: bool = False) -> AccessView:
    """Rules, settings and topics as brokers tell them; or the rules alone. Raises NoAuthorizer, KctlError."""
    acls = tuple(read_acls(cluster.wire))
    if rules_only:
        return AccessView(acls=acls)
    state = cluster.read_state((), partition_states=False, visibility=True)
    problems = list(state.problems)
    settings = read_settings(cluster.wire, state, problems)
    return AccessView(
        acls=acls,
        settings=settings,
        kafka_version=state.kafka_version,
        topics=None if state.hidden else state.topic_names,
        hidden=state.hidden,
        problems=tuple(problems),
    )


# --- changes --------------------------------------------------------------------------------------------


class KnownRules(NamedTuple):
    """The rules on the resources of a request that it was computed from."""

    rules: tuple[Acl, ...]


def _on(acls: Iterable[Acl], resources: Collection[Resource]) -> tuple[Acl, ...]:
    return tuple(sorted_acls(acl for acl in acls if acl.resource in resources))


def _rows(acls: Iterable[Acl]) -> list[Json]:
    return [dict(acl._asdict()) for acl in acls]


class AclRequest(Request, frozen=True, kw_only=True):
    """Rules on one resource."""

    is_to_be_seen: ClassVar[bool] = True
    expected: KnownRules
    acls: tuple[Acl, ...]

    def content(self) -> dict[str, Json]:
        return {"acls": _rows(self.acls)}

    def expectation(self) -> Json:
        return {"rules": _rows(self.expected.rules)}

    @classmethod
    def read(cls, about: str, content: Mapping[str, Any], expectation: Any) -> Self:
        acls, rules = (tuple(map(Acl.from_json, rows)) for rows in (content["acls"], expectation["rules"]))
        return cls(about=about, acls=acls, expected=KnownRules(rules))

    @property
    def item_count(self) -> int:
        return len(self.acls)

    def refuse_other_answers(self, wire: Wire) -> None:
        """Raise Conflict if the rules on a resource are not those that the change was computed from."""
        expected = self.expected.rules
        resources = {acl.resource for acl in (*expected, *self.acls)}
        present = _on(read_acls(wire), resources)
        if set(present) != set(expected):
            others = [f"{acl} is there now" for acl in present if acl not in expected]
            gone = [f"{acl} is gone" for acl in expected if acl not in present]
            raise Conflict(
                f"somebody else changed the rules: {'; '.join((*others, *gone)[:3])}; nothing was written"
            )

    def lines(self) -> Iterator[Line]:
        for acl in self.acls:
            yield Line(f"{acl.permission} {acl.principal} {acl.operation} from {acl.host}")


class CreateAcls(AclRequest, frozen=True, kw_only=True):
    """Rules that come."""

    def send(self, wire: Wire, validate_only: bool) -> Iterator[RequestItem]:
        creations = [
            CreateAclsRequest.AclCreation(
                resource_type=number_of(RESOURCE_TYPES, acl.resource_type),
                resource_name=acl.resource_name,
                resource_pattern_type=number_of(PATTERN_TYPES, acl.pattern_type),
                principal=acl.principal,
                host=acl.host,
                operation=number_of(OPERATIONS, acl.operation),
                permission_type=number_of(PERMISSIONS, acl.permission),
            )
            for acl in self.acls
        ]
        results = ask(wire, CreateAclsRequest(creations=creations, **_at_least(self.acls))).results
        for acl, result in zip(self.acls, results, strict=True):
            yield RequestItem(str(acl), result.error_code, result.error_message)

    def is_done(self, wire: Wire, state: ClusterState, of: Quantifier = all) -> bool:
        present = set(read_acls(wire))
        return of(acl in present for acl in self.acls)


class DeleteAcls(AclRequest, frozen=True, kw_only=True):
    """Rules that go."""

    def send(self, wire: Wire, validate_only: bool) -> Iterator[RequestItem]:
        filters = [
            DeleteAclsRequest.DeleteAclsFilter(
                resource_type_filter=number_of(RESOURCE_TYPES, acl.resource_type),
                resource_name_filter=acl.resource_name,
                pattern_type_filter=number_of(PATTERN_TYPES, acl.pattern_type),
                principal_filter=acl.principal,
                host_filter=acl.host,
                operation=number_of(OPERATIONS, acl.operation),
                permission_type=number_of(PERMISSIONS, acl.permission),
            )
            for acl in self.acls
        ]
        results = ask(wire, DeleteAclsRequest(filters=filters, **_at_least(self.acls))).filter_results
        for acl, result in zip(self.acls, results, strict=True):
            failed = next((match for match in result.matching_acls if match.error_code), result)
            yield RequestItem(str(acl), failed.error_code, failed.error_message)

    def is_done(self, wire: Wire, state: ClusterState, of: Quantifier = all) -> bool:
        present = set(read_acls(wire))
        return of(acl not in present for acl in self.acls)


def _at_least(acls: Iterable[Acl]) -> dict[str, int]:
    """The version that carries prefixes: brokers before 2.0 would take them for names."""
    return {"min_version": 1} if any(acl.pattern_type == "prefixed" for acl in acls) else {}


def alter_acls(wire: Wire, intent: Intent) -> list[Request]:
    """The rules to create, then those to delete; each with the rules that are on their resources now."""
    assert isinstance(intent, AlterAcls)
    present = read_acls(wire)
    added = [acl for acl in intent.added if acl not in present]
    removed = [acl for acl in intent.removed if acl in present]
    expected = KnownRules(_on(present, {acl.resource for acl in (*added, *removed)}))
    changes: tuple[tuple[type[AclRequest], list[Acl]], ...] = ((CreateAcls, added), (DeleteAcls, removed))
    return [
        kind(
            about=f"on {resource}",
            acls=tuple(acl for acl in acls if acl.resource == resource),
            expected=expected,
        )
        for kind, acls in changes
        for resource in dict.fromkeys(acl.resource for acl in acls)
    ]
