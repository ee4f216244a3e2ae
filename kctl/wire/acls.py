"""Rules over the Admin protocol: read, created, deleted; and the authorizer's settings that brokers tell.

Source: clients/src/main/resources/common/message/{DescribeAcls,CreateAcls,DeleteAcls}Request.json @ 4.3.0 (KIP-140, KIP-290);
core/src/main/scala/kafka/server/ConfigHelper.scala @ 3.9.0-rc3 (keys of unknown type are not told)
"""

from typing import Any

from kafka.protocol.admin.acl import DescribeAclsRequest

from kctl.access.acl import Acl
from kctl.access.authorizer import AuthorizerSettings
from kctl.access.view import SETTINGS, AccessView, agreed, settings_of
from kctl.cluster.state import ClusterState, Problem
from kctl.errors import KctlError
from kctl.wire.adapter import BrokerError, Wire, error_name
from kctl.wire.cluster import AdminCluster
from kctl.wire.configs import in_force

ANY = 1
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


class NoAuthorizer(KctlError):
    """The brokers have no authorizer: everybody may do everything, and there are no rules."""

    hint = "set authorizer.class.name on brokers and controllers, and restart them one by one"

    def __init__(self) -> None:
        super().__init__("no authorizer is configured on the brokers: everybody may do everything")


def read_acls(wire: Wire) -> list[Acl]:
    """Every rule. Raises NoAuthorizer, KctlError."""
    answer = wire.read(DescribeAclsRequest(**FILTER))
    if answer.error_code == SECURITY_DISABLED:
        raise NoAuthorizer
    if answer.error_code:
        message = (answer.error_message or "").rstrip(".") or "the rules are not listed"
        raise BrokerError(f"rules of access: {message} ({error_name(answer.error_code)})")
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
            problems.append(Problem(f"configuration of {where}", configs.message))
            unknown = tuple(f"{key} of {where}: {configs.message}" for key in SETTINGS[1:])
            listed.append(AuthorizerSettings(super_users=None, allow_everyone=None, unknown=unknown))
        else:
            listed.append(settings_of({config.key: config.value for config in configs}, where))
    return agreed(listed)


def read_access(cluster: AdminCluster) -> AccessView:
    """Rules, settings and topics as brokers tell them. Raises NoAuthorizer, KctlError."""
    state = cluster.read_state((), partition_states=False)
    problems = list(state.problems)
    acls = read_acls(cluster.wire)
    settings = read_settings(cluster.wire, state, problems)
    return AccessView(
        acls=tuple(acls), settings=settings, kafka_version=state.kafka_version, topics=state.topic_names,
        problems=tuple(problems),
    )  # fmt: skip
