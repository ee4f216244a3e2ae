"""Who gains and who loses what by a change of rules, and what of it would lock somebody out.

Asked are the principals that any rule or credential names and, as `User:*`, everybody else; on the topics, groups and
transactional ids that exist and are touched by a changed rule, or on the names of the rules where it is not known what
exists. Rules never concern super users: where these are not known, what is said of a principal holds unless it is one.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import NamedTuple

from formats.values import Struct, field, replace
from kctl.access.acl import CLUSTER, EVERYBODY, OPERATIONS_OF, WILDCARD, Acl, Resource
from kctl.access.authorizer import Authorizer
from kctl.access.view import AccessView
from kctl.model import some

MOST_RESOURCES = 2000  # of one type that are asked about
SOMEBODY = "User:somebody whom no rule names"  # in place of everybody else: User:* in rules is about it too
WORDS = {True: "allowed", False: "denied", None: "unknown"}


class Uses(Struct, frozen=True, kw_only=True):
    """What is in use now: the groups that read each topic, and those with members."""

    groups: tuple[str, ...] = ()
    groups_by_topic: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    connected: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """The hosts of the members of each group that has any."""


class AccessChange(NamedTuple):
    """An operation that somebody gains or loses."""

    principal: str
    host: str
    operation: str
    resource: Resource
    before: str
    after: str
    used_by: tuple[str, ...] = ()

    @property
    def is_loss(self) -> bool:
        """Whether it is, or may be, taken away."""
        return self.before != "denied" and self.after == "denied"


def principals_of(acls: Iterable[Acl], users: Iterable[str] = ()) -> list[str]:
    """Everybody whom rules or credentials name."""
    named = {acl.principal for acl in acls} | {f"User:{user}" for user in users}
    return sorted(named - {EVERYBODY})


def touched(acl: Acl, existing: Mapping[str, Collection[str] | None]) -> list[str]:
    """The names of resources that a rule is about: of those that exist, else the rule's own."""
    names = existing.get(acl.resource_type)
    if names is None or acl.resource_type == "cluster":
        return [acl.resource_name]
    matching = sorted(name for name in names if acl.resource.matches(name))
    return matching[:MOST_RESOURCES] or [acl.resource_name]


def _both(view: AccessView, added: list[Acl], removed: list[Acl]) -> tuple[Authorizer, Authorizer]:
    """What decides before and after a change, for whoever is no super user."""
    if view.settings.super_users is None:
        view = replace(view, settings=replace(view.settings, super_users=frozenset()))
    gone = set(removed)
    kept = [acl for acl in view.acls if acl not in gone]
    return view.authorizer(), view.authorizer([*kept, *added])


def forecast(
    view: AccessView, added: Iterable[Acl], removed: Iterable[Acl], uses: Uses | None = None
) -> list[AccessChange]:
    """Each operation of each principal that is decided differently after the change, losses first."""
    added, removed = list(added), list(removed)
    changed = [*added, *removed]
    before, after = _both(view, added, removed)
    hosts = sorted({WILDCARD, *(acl.host for acl in changed)})
    everybody = [*principals_of([*view.acls, *changed], view.users or ()), SOMEBODY]
    concerned: dict[tuple[str, str], set[str]] = {}
    for acl in changed:
        for name in touched(acl, view.existing):
            concerned.setdefault((acl.resource_type, name), set()).add(acl.principal)
    changes = []
    for (kind, name), named in sorted(concerned.items()):
        resource = Resource(kind, name)
        begins_or_ends = _is_ruled(before, kind, name) is not _is_ruled(after, kind, name)
        asked = everybody if EVERYBODY in named or begins_or_ends else sorted(named)
        for change in _of_resource(before, after, resource, asked, hosts):
            changes.append(change._replace(used_by=_users(change, before, uses or Uses())))
    return sorted(changes, key=lambda change: (not change.is_loss, change))


def _is_ruled(authorizer: Authorizer, kind: str, name: str) -> bool:
    """Whether any rule is about a resource."""
    return next(authorizer.rules_on(kind, name), None) is not None


def _of_resource(
    before: Authorizer, after: Authorizer, resource: Resource, principals: Iterable[str], hosts: Iterable[str]
) -> Iterator[AccessChange]:
    for principal in principals:
        for operation in OPERATIONS_OF.get(resource.resource_type, ()):
            anywhere: tuple[str, str] | None = None
            for host in hosts:  # `*` comes first: it sorts before every address
                was, becomes = (
                    WORDS[authorizer.decide(principal, operation, resource, host).allowed]
                    for authorizer in (before, after)
                )
                if host == WILDCARD:
                    anywhere = was, becomes
                elif (was, becomes) == anywhere:
                    continue
                if was != becomes:
                    name = EVERYBODY if principal == SOMEBODY else principal
                    yield AccessChange(name, host, operation, resource, was, becomes)


def _users(change: AccessChange, before: Authorizer, uses: Uses) -> tuple[str, ...]:
    """The groups that the principal may be, which use what it loses."""
    if not change.is_loss or change.operation not in ("read", "describe"):
        return ()
    if change.resource.resource_type == "topic":
        groups = uses.groups_by_topic.get(change.resource.resource_name, ())
    elif change.resource.resource_type == "group":
        groups = (change.resource.resource_name,)
    else:
        return ()
    principal = SOMEBODY if change.principal == EVERYBODY else change.principal
    return tuple(
        group
        for group in groups
        if (group in uses.connected or change.resource.resource_type == "topic")
        and before.decide(principal, "read", Resource("group", group), change.host).allowed is not False
    )


OWN_NEEDS = ("alter", "describe")
THE_CLUSTER = Resource("cluster", CLUSTER)


def lockouts(
    view: AccessView,
    added: Iterable[Acl],
    removed: Iterable[Acl],
    *,
    own: str | None,
    brokers: str | None,
    is_undo: bool = False,
) -> list[str]:
    """Why a change would lock out: the principal that makes it, the brokers', everybody; or make a resource open to all.

    `own` and `brokers` are principals, None where they are not known: then whoever may do what brokers do counts.
    Going back (`is_undo`) to what was open or closed before needs a setting that is known.
    """
    added, removed = list(added), list(removed)
    before, after = _both(view, added, removed)
    sentences = []
    if own is not None:
        lost = [operation for operation in OWN_NEEDS if _loses(before, after, own, operation)]
        if lost:
            sentences.append(f"{own}, who makes this change, would lose {' and '.join(lost)} on the cluster")
    named = principals_of([*view.acls, *added])
    possible = [brokers] if brokers is not None else [*named, SOMEBODY]
    for principal in possible:
        if _loses(before, after, principal, "cluster_action"):
            who = "everybody whom no rule names" if principal == SOMEBODY else principal
            are = "as whom brokers connect to each other" if brokers else "which brokers may connect as"
            sentences.append(f"{who}, {are}, would lose cluster_action on the cluster")
    may = [[p for p in [*named, SOMEBODY] if _may_alter(authorizer, p)] for authorizer in (before, after)]
    if may[0] and not may[1] and not view.settings.has_super_users:
        unless = ", unless there are super users" if view.settings.super_users is None else ""
        sentences.append(f"nobody would be left with alter on the cluster{unless}")
    if not (is_undo and view.settings.allow_everyone is None):
        sentences += _begun_or_ended(view, before, after, added, removed)
    return sentences


def _loses(before: Authorizer, after: Authorizer, principal: str, operation: str) -> bool:
    was, becomes = (authorizer.decide(principal, operation, THE_CLUSTER) for authorizer in (before, after))
    return was.allowed is not False and becomes.allowed is False


def _may_alter(authorizer: Authorizer, principal: str) -> bool:
    return authorizer.decide(principal, "alter", THE_CLUSTER).allowed is not False


def _begun_or_ended(
    view: AccessView, before: Authorizer, after: Authorizer, added: list[Acl], removed: list[Acl]
) -> Iterator[str]:
    """Resources that get their first rule or lose their last one while everybody is allowed where there is none."""
    if view.settings.allow_everyone is False:
        return
    known = "allow.everyone.if.no.acl.found is true" if view.settings.allow_everyone else (
        "allow.everyone.if.no.acl.found is not known"
    )  # fmt: skip
    names = {(acl.resource_type, name) for acl in (*added, *removed) for name in touched(acl, view.existing)}
    begun: list[str] = []
    ended: list[str] = []
    for kind, name in sorted(names):
        had, has = (_is_ruled(authorizer, kind, name) for authorizer in (before, after))
        if had is not has:
            (begun if has else ended).append(str(Resource(kind, name)))
    for resources, what in (
        (begun, "would have rules for the first time: whoever no rule allows is denied"),
        (ended, "would have no rule any more: everybody may do everything with it"),
    ):
        if resources:
            yield f"{known}, and {some(resources)} {what}"
