"""What a cluster says about access at one moment: rules, settings of the authorizer, users, topics and groups."""

from collections.abc import Collection, Iterable, Mapping

from formats.log_dir.meta_properties import parse_properties
from formats.values import Struct, field, replace
from kctl.access.acl import Acl, sorted_acls
from kctl.access.authorizer import (
    ALLOW_EVERYONE,
    SUPER_USERS,
    Authorizer,
    AuthorizerSettings,
    parse_super_users,
)
from kctl.cluster.state import Problem
from kctl.cluster.versions import KafkaVersion
from kctl.errors import BadValue, KctlError

RULES, USERS = "rules of access", "credentials of users"  # places of problems
AUTHORIZER = "authorizer.class.name"
SETTINGS = (AUTHORIZER, SUPER_USERS, ALLOW_EVERYONE)
KNOWN_AUTHORIZERS = ("StandardAuthorizer", "AclAuthorizer", "SimpleAclAuthorizer")
NOT_TOLD = AuthorizerSettings(
    super_users=None,
    allow_everyone=None,
    unknown=(f"{SUPER_USERS} and {ALLOW_EVERYONE} are in the brokers' server.properties",),
)


class NoAuthorizer(KctlError):
    """The brokers have no authorizer: everybody may do everything, and there are no rules."""

    hint = "set authorizer.class.name on brokers and controllers, and restart them one by one"

    def __init__(self) -> None:
        super().__init__("no authorizer is configured on the brokers: everybody may do everything")


class AccessView(Struct, frozen=True, kw_only=True):
    """Rules and what they are about; None for what was not read."""

    acls: tuple[Acl, ...]
    settings: AuthorizerSettings = NOT_TOLD
    kafka_version: KafkaVersion | None = None
    topics: Collection[str] | None = None
    hidden: str = ""
    """Why topics may be hidden from this user, a clause; then none are named."""
    groups: Collection[str] | None = None
    transactional_ids: Collection[str] | None = None
    users: Mapping[str, Collection[str]] | None = None
    """The mechanisms of each user with SCRAM credentials."""
    credentials: Mapping[str, Mapping[str, int | None]] = field(default_factory=dict)
    """The iterations of each user by mechanism, as a metadata log has them."""
    problems: tuple[Problem, ...] = field(default_factory=tuple)

    @property
    def existing(self) -> Mapping[str, Collection[str] | None]:
        """The names that there are of each type of resource; None where they were not read."""
        return {"topic": self.topics, "group": self.groups, "transactional_id": self.transactional_ids}

    def authorizer(self, acls: Iterable[Acl] | None = None) -> Authorizer:
        """What decides by these rules, or by others."""
        return Authorizer(self.acls if acls is None else acls, self.settings, self.kafka_version)


def settings_of(values: Mapping[str, str | None], where: str) -> AuthorizerSettings:
    """The settings from a broker's configuration, in which None stands for a value that is set and not told.

    Raises BadValue for a value that the broker would not start with.
    """
    unknown = [f"{key} of {where} is set and not told" for key in SETTINGS[1:] if values.get(key, "") is None]
    name = values.get(AUTHORIZER, "")
    if name is not None and name.rpartition(".")[2] not in ("", *KNOWN_AUTHORIZERS):
        unknown.append(f"{where} has an authorizer of its own, {name}, whose decisions are not known")
        return AuthorizerSettings(super_users=None, allow_everyone=None, unknown=tuple(unknown))
    everyone, names = values.get(ALLOW_EVERYONE, ""), values.get(SUPER_USERS, "")
    if everyone is not None and everyone.strip().lower() not in ("", "true", "false"):
        raise BadValue(f"{ALLOW_EVERYONE} of {where} is {everyone!r}", "it is true or false")
    return AuthorizerSettings(
        super_users=None if names is None else parse_super_users(names),
        allow_everyone=None if everyone is None else everyone.strip().lower() == "true",
        is_enabled=name != "",
        unknown=tuple(unknown),
    )


def settings_of_file(text: str, where: str) -> AuthorizerSettings:
    """The settings from the text of a `server.properties`. Raises BadValue."""
    values = parse_properties(text)
    return settings_of({key: values.get(key, "") for key in SETTINGS}, where)


def agreed(settings: Iterable[AuthorizerSettings]) -> AuthorizerSettings:
    """The settings of several brokers: what differs between them is not known."""
    listed = list(settings)
    if not listed:
        return NOT_TOLD
    first, unknown = listed[0], [clause for each in listed for clause in each.unknown]
    if any(each.is_enabled is not first.is_enabled for each in listed):
        unknown.append("some brokers have an authorizer and others have none")
        return AuthorizerSettings(super_users=None, allow_everyone=None, unknown=tuple(unknown))
    merged: dict[str, object] = {}
    for name, key in (("super_users", SUPER_USERS), ("allow_everyone", ALLOW_EVERYONE)):
        values = {getattr(each, name) for each in listed}
        merged[name] = getattr(first, name) if len(values) == 1 else None
        if len(values) > 1 and None not in values:
            unknown.append(f"{key} differs between brokers")
    return replace(first, unknown=tuple(dict.fromkeys(unknown)), **merged)


def with_given(
    settings: AuthorizerSettings, super_users: Collection[str], allow_everyone: bool | None
) -> AuthorizerSettings:
    """The settings with those that the user knows in the place of those that are not told."""
    unknown = settings.unknown
    if super_users:
        settings = replace(settings, super_users=frozenset(super_users))
        unknown = tuple(clause for clause in unknown if not clause.startswith(SUPER_USERS))
    if allow_everyone is not None:
        settings = replace(settings, allow_everyone=allow_everyone)
        unknown = tuple(clause for clause in unknown if not clause.startswith(ALLOW_EVERYONE))
    return replace(settings, unknown=unknown)


def chosen(
    acls: Iterable[Acl],
    *,
    principals: Collection[str] = (),
    operations: Collection[str] = (),
    resources: Collection[tuple[str, str | None]] = (),
    pattern: str | None = None,
    hosts: Collection[str] = (),
    permission: str | None = None,
) -> list[Acl]:
    """The rules that fit what is given, sorted. A resource is its type and name (None: any of the type).

    `pattern`: literal and prefixed name patterns as they are written, `match` those that are about the name.
    """

    def fits(acl: Acl) -> bool:
        return (
            (not principals or acl.principal in principals)
            and (not operations or acl.operation in operations)
            and (not hosts or acl.host in hosts)
            and permission in (None, acl.permission)
            and (pattern in (None, "match") or acl.pattern_type == pattern)
            and (not resources or any(_is_about(acl, *resource) for resource in resources))
        )

    def _is_about(acl: Acl, resource_type: str, name: str | None) -> bool:
        if acl.resource_type != resource_type:
            return False
        if name is None:
            return True
        return acl.resource.matches(name) if pattern == "match" else acl.resource_name == name

    return sorted_acls(acl for acl in acls if fits(acl))
