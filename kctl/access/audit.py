"""Findings about rules and credentials: what decides nothing, and what decides more than was meant."""

import ipaddress
from collections.abc import Iterator

from kctl.access.acl import EVERYBODY, OPERATIONS_OF, WILDCARD, Acl
from kctl.access.authorizer import IMPLIES, Authorizer
from kctl.access.view import AccessView
from kctl.findings import Finding, Place, Severity
from kctl.findings import access as codes

INTERNAL = ("__consumer_offsets", "__transaction_state", "__share_group_state", "__remote_log_metadata")
CHANGING = frozenset({"all", "write", "create", "delete", "alter", "alter_configs", "cluster_action"})
WRITING = frozenset({"all", "write", "delete", "alter", "alter_configs"})


def audit_access(view: AccessView) -> Iterator[Finding]:
    """Findings about the rules, by resource, then about users."""
    authorizer = Authorizer(view.acls, view.settings, view.kafka_version)
    for problem in view.problems:
        if problem.place.startswith("/kafka-acl"):
            yield codes.UNREADABLE.at(path=problem.place, what=problem.reason)
    for acl in sorted(authorizer.acls):
        never = _never_matches(acl, view)
        if never is not None:
            yield never
        else:
            yield from _decides_nothing(acl, authorizer, view)
        yield from _too_wide(acl)
    yield from _users(view)


def _place(acl: Acl) -> Place:
    is_topic = (
        acl.resource_type == "topic" and acl.pattern_type == "literal" and acl.resource_name != WILDCARD
    )
    return Place(topic=acl.resource_name if is_topic else None)


def _never_matches(acl: Acl, view: AccessView) -> Finding | None:
    """A finding where the rule matches nothing; a mistake is a warning, what may come to be is not."""
    operations = OPERATIONS_OF.get(acl.resource_type)
    if acl.host != WILDCARD and not _is_address(acl.host):
        why = f"brokers compare {acl.host!r} with the address of the client, as text"
    elif operations is not None and acl.operation not in ("all", *operations):
        why = f"brokers check no {acl.operation} on a {acl.resource_type}"
    elif acl.pattern_type == "prefixed" and acl.resource_name == WILDCARD:
        why = "the prefix `*` means names that begin with a star"
    else:
        names = {"topic": view.topics, "group": view.groups}.get(acl.resource_type)
        if names is None or any(acl.resource.matches(name) for name in names):
            return None
        kind = acl.resource_type
        why = f"there is no {kind}" if acl.resource_name == WILDCARD else f"no {kind} has such a name now"
        return codes.NEVER_MATCHES.at(_place(acl), acl=acl, why=why)
    return codes.NEVER_MATCHES.at(_place(acl), severity=Severity.WARNING, acl=acl, why=why)


def _is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        return False
    return True


def _decides_nothing(acl: Acl, authorizer: Authorizer, view: AccessView) -> Iterator[Finding]:
    others = [other for other in _on_all_of(acl, authorizer) if other != acl]
    if acl.permission == "allow":
        denying = next((o for o in others if o.permission == "deny" and _covers(o, acl)), None)
        if denying is not None:
            how = "denies all that it allows"
            yield codes.SHADOWED.at(_place(acl), severity=Severity.WARNING, acl=acl, other=denying, how=how)
            return
    for other in others:
        if (
            other.permission == acl.permission
            and _covers(other, acl)
            and not (_covers(acl, other) and other > acl)
        ):
            how = "allows the same and more" if acl.permission == "allow" else "denies the same and more"
            yield codes.SHADOWED.at(_place(acl), acl=acl, other=other, how=how)
            return
    if (
        acl.permission == "deny"
        and view.settings.allow_everyone is False
        and not _touches_allowed(acl, authorizer)
    ):
        yield codes.DENIES_NOTHING.at(_place(acl), acl=acl)


def _on_all_of(acl: Acl, authorizer: Authorizer) -> Iterator[Acl]:
    """The rules that are about all that a rule is about."""
    for other in authorizer.rules_on(acl.resource_type, acl.resource_name):
        if (
            acl.pattern_type == "literal"
            or other.pattern_type == "prefixed"
            or other.resource_name == WILDCARD
        ):
            if (
                acl.resource_name == WILDCARD
                and acl.pattern_type == "literal"
                and other.pattern_type == "prefixed"
            ):
                continue
            yield other


def _covers(broad: Acl, narrow: Acl) -> bool:
    """Whether a rule decides all that another one decides, on the same resources."""
    return (
        broad.principal in (narrow.principal, EVERYBODY)
        and broad.host in (narrow.host, WILDCARD)
        and (
            broad.operation in (narrow.operation, "all")
            or (
                broad.permission == narrow.permission == "allow"
                and broad.operation in IMPLIES.get(narrow.operation, ())
            )
        )
    )


def _touches_allowed(acl: Acl, authorizer: Authorizer) -> bool:
    """Whether any rule allows something that a denying rule may deny."""
    for other in authorizer.acls:
        if other.permission != "allow" or other.resource_type != acl.resource_type:
            continue
        same = EVERYBODY in (acl.principal, other.principal) or acl.principal == other.principal
        at = WILDCARD in (acl.host, other.host) or acl.host == other.host
        implied = acl.operation in IMPLIES and other.operation in IMPLIES[acl.operation]
        operation = "all" in (acl.operation, other.operation) or acl.operation == other.operation or implied
        if same and at and operation and _overlap(acl, other):
            return True
    return False


def _overlap(first: Acl, second: Acl) -> bool:
    if WILDCARD in (first.resource_name, second.resource_name):
        return True
    if first.pattern_type == second.pattern_type == "prefixed":
        names = first.resource_name, second.resource_name
        return names[0].startswith(names[1]) or names[1].startswith(names[0])
    if first.pattern_type == "prefixed":
        return second.resource_name.startswith(first.resource_name)
    if second.pattern_type == "prefixed":
        return first.resource_name.startswith(second.resource_name)
    return first.resource_name == second.resource_name


def _too_wide(acl: Acl) -> Iterator[Finding]:
    if acl.permission != "allow":
        return
    is_wild = acl.resource_name == WILDCARD and acl.pattern_type == "literal"
    if acl.principal == EVERYBODY and acl.operation in CHANGING:
        what = f"every {acl.resource_type}" if is_wild else str(acl.resource)
        yield codes.WIDE_OPEN.at(_place(acl), acl=acl, whom="everybody", what=what)
    elif acl.operation in CHANGING and is_wild:
        what = f"every {acl.resource_type}"
        yield codes.WIDE_OPEN.at(_place(acl), severity=Severity.INFO, acl=acl, whom=acl.principal, what=what)
    if acl.resource_type == "topic" and acl.pattern_type == "prefixed" and acl.operation in WRITING:
        reached = [name for name in INTERNAL if name.startswith(acl.resource_name)]
        if reached:
            yield codes.REACHES_INTERNAL.at(_place(acl), acl=acl, topics=", ".join(reached))


def _users(view: AccessView) -> Iterator[Finding]:
    """Rules without a user and the reverse, where users have SCRAM credentials at all."""
    if not view.users:
        return
    named = {acl.principal for acl in view.acls if acl.principal != EVERYBODY}
    super_users = view.settings.super_users or frozenset()
    for principal in sorted(named - super_users):
        kind, _, name = principal.partition(":")
        if kind == "User" and name not in view.users and name != "ANONYMOUS":
            yield codes.WITHOUT_USER.at(principal=principal)
    for user in sorted(view.users):
        if f"User:{user}" not in named | super_users:
            yield codes.USER_WITHOUT.at(user=user)
