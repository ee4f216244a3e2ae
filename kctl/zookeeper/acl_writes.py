"""Rules of access into znodes, as AclAuthorizer of each version reads and writes them.

A resource has one znode with all its rules; one without rules is deleted. Brokers read a resource again when a
notification names it; the name's spelling in it depends on the version.

Source: core/src/main/scala/kafka/security/auth/SimpleAclAuthorizer.scala @ 0.9.0.1, 0.11.0.3-rc0;
core/src/main/scala/kafka/zk/ZkData.scala @ 2.4.1, 2.5.0, 3.9.0-rc3
"""

import json
from typing import Any

from formats.errors import FormatError
from formats.znodes.security import AclRule, parse_acls, protocol_name
from kctl.access.acl import Acl, Resource
from kctl.changes.kinds.access import AlterAcls
from kctl.cluster.intent import PlainWrite, Write
from kctl.cluster.versions import V0_9, V0_11, V1_1, V2_0, KafkaVersion, parse_version
from kctl.errors import Refused
from kctl.zookeeper.access import STORES
from kctl.zookeeper.fresh import FreshZnodes, missing_parents, set_or_create

CHANGES = {"literal": "/kafka-acl-changes", "prefixed": "/kafka-acl-extended-changes"}
V2_5, V3_3 = parse_version("2.5"), parse_version("3.3")
# The first version that knows a type of resource or an operation; the others came with rules, in 0.9.
SINCE = {
    "transactional_id": V0_11, "describe_configs": V0_11, "alter_configs": V0_11, "idempotent_write": V0_11,
    "delegation_token": V1_1, "user": V3_3, "create_tokens": V3_3, "describe_tokens": V3_3,
}  # fmt: skip


def znode_name(name: str) -> str:
    """A name as it stands in znodes: `transactional_id` is `TransactionalId`."""
    return "".join(word.capitalize() for word in name.split("_"))


def acl_path(resource: Resource) -> str:
    """The znode with the rules on a resource."""
    return f"{STORES[resource.pattern_type]}/{znode_name(resource.resource_type)}/{resource.resource_name}"


def alter_acls(fresh: FreshZnodes, intent: AlterAcls) -> list[Write]:
    """The rules of each resource that is touched, and a notification for each."""
    by_resource: dict[Resource, tuple[list[Acl], list[Acl]]] = {}
    for acls, place in ((intent.added, 0), (intent.removed, 1)):
        for acl in acls:
            by_resource.setdefault(acl.resource, ([], []))[place].append(acl)
    for acl in intent.added:
        refuse_unknown(acl, fresh.version)
    fresh.get(*map(acl_path, by_resource))
    writes: list[Write] = []
    made: set[str] = set()
    for resource, (added, removed) in by_resource.items():
        writes += _one_resource(fresh, resource, added, removed, made)
    return writes


def refuse_unknown(acl: Acl, version: KafkaVersion) -> None:
    """Raise Refused for a rule that brokers of a version do not know: one makes their authorizer fail on its start."""
    for name in (acl.resource_type, acl.operation):
        if version < SINCE.get(name, V0_9):
            raise Refused(f"Kafka {version} knows no {name}; nothing was written", "check --kafka-version")
    if acl.pattern_type == "prefixed" and version < V2_0:
        raise Refused(
            f"Kafka {version} knows no prefixed rules; nothing was written",
            "name each resource, or use `*`",
        )
    if "/" in acl.resource_name:
        raise Refused(
            f"{acl.resource_name!r} cannot be the name of a znode; nothing was written",
            "ZooKeeper keeps no rules on names with a slash",
        )


def _one_resource(
    fresh: FreshZnodes, resource: Resource, added: list[Acl], removed: list[Acl], made: set[str]
) -> list[Write]:
    path = acl_path(resource)
    (node,) = fresh.get(path)
    try:
        present = parse_acls(node.data) if node is not None and node.data else ()
    except FormatError as error:
        raise Refused(
            f"{path} cannot be read ({error.what}); nothing was written", "repair it first"
        ) from error
    gone = {_key(_rule(acl)) for acl in removed}
    kept = [rule for rule in present if _key(rule) not in gone]
    keys = {_key(rule) for rule in kept}
    wanted = [*kept, *(rule for acl in added if _key(rule := _rule(acl)) not in keys)]
    if {_key(rule) for rule in wanted} == {_key(rule) for rule in present}:
        return []
    changes = CHANGES[resource.pattern_type]
    notification = f"{changes}/acl_changes_"
    parents = [*missing_parents(fresh, path, made), *missing_parents(fresh, notification, made)]
    if wanted or node is None:
        write = set_or_create(path, node, format_acls(wanted))
    else:
        write = PlainWrite(action="delete", target=path, before=node.data, version=node.stat.version)
    told = PlainWrite(
        action="create", target=notification, after=notification_data(resource, fresh.version), sequence=True
    )
    return [*parents, write, told]


def _rule(acl: Acl) -> AclRule:
    return AclRule(acl.principal, acl.host, znode_name(acl.operation), acl.permission.capitalize())


def _key(rule: AclRule) -> tuple[str, ...]:
    """What makes two rules the same one, however their words are spelt."""
    return rule.principal, rule.host, protocol_name(rule.operation), rule.permission_type.upper()


def format_acls(rules: list[AclRule]) -> bytes:
    """The content of a resource's znode."""
    values: list[dict[str, Any]] = [
        {
            "principal": rule.principal,
            "permissionType": rule.permission_type,
            "operation": rule.operation,
            "host": rule.host,
        }
        for rule in rules
    ]
    return json.dumps({"version": 1, "acls": values}, separators=(",", ":"), ensure_ascii=False).encode()


def notification_data(resource: Resource, version: KafkaVersion) -> bytes:
    """The content of a notification about a resource."""
    kind = resource.resource_type.upper() if version >= V2_5 else znode_name(resource.resource_type)
    if resource.pattern_type == "literal":
        return f"{kind}:{resource.resource_name}".encode()
    pattern = resource.pattern_type.upper()
    event = {"version": 1, "resourceType": kind, "name": resource.resource_name, "patternType": pattern}
    return json.dumps(event, separators=(",", ":"), ensure_ascii=False).encode()
