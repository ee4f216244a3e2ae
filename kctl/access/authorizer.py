"""What a broker's authorizer decides: the algorithm of AclAuthorizer and StandardAuthorizer, as a function of its rules.

Super users may do everything. Else the rules on the resource count: those on its name, on a prefix of it and on `*`.
A rule that denies wins over all that allow. Allowing `read`, `write`, `delete` or `alter` allows `describe`, allowing
`alter_configs` allows `describe_configs`; denying implies nothing. Without any rule on the resource, for whomever,
`allow.everyone.if.no.acl.found` decides.

Source: core/src/main/scala/kafka/security/auth/SimpleAclAuthorizer.scala @ 0.9.0.1, 0.10.0.1, 0.10.1.1, 0.11.0.3-rc0;
core/src/main/scala/kafka/security/authorizer/AclAuthorizer.scala @ 2.8.2-rc0;
metadata/src/main/java/org/apache/kafka/metadata/authorizer/StandardAuthorizerData.java @ 3.9.0-rc3
"""

from collections.abc import Iterable, Iterator
from typing import Literal, NamedTuple

from formats.values import Struct
from kctl.access.acl import EVERYBODY, WILDCARD, Acl, Resource
from kctl.cluster.versions import V0_10_1, V0_11, KafkaVersion

By = Acl | Literal["super_user", "allow_everyone", "no_authorizer", "nothing"]
IMPLIES = {
    "describe": ("describe", "read", "write", "delete", "alter"),
    "describe_configs": ("describe_configs", "alter_configs"),
}


class AuthorizerSettings(Struct, frozen=True, kw_only=True):
    """What an authorizer knows besides its rules; None: not known. `unknown` says why, a clause a setting."""

    super_users: frozenset[str] | None = frozenset()
    allow_everyone: bool | None = False
    is_enabled: bool = True
    unknown: tuple[str, ...] = ()

    @property
    def has_super_users(self) -> bool:
        """Whether there are super users, known or not."""
        is_set = any(clause.startswith(SUPER_USERS) and "is set" in clause for clause in self.unknown)
        return bool(self.super_users) or (self.super_users is None and is_set)


class Decision(NamedTuple):
    """Whether something is allowed, and what decides. `allowed` is None where a setting that decides is not known."""

    allowed: bool | None
    by: By
    missing: tuple[str, ...] = ()  # settings of brokers that would decide: `super.users`

    @property
    def reason(self) -> str:
        """What decides, in words: `allow User:alice read on topic orders`."""
        return self.by.replace("_", " ") if isinstance(self.by, str) else str(self.by)


SUPER_USERS, ALLOW_EVERYONE = "super.users", "allow.everyone.if.no.acl.found"


class Authorizer:
    """Rules, made ready to be asked."""

    def __init__(
        self,
        acls: Iterable[Acl],
        settings: AuthorizerSettings | None = None,
        kafka_version: KafkaVersion | None = None,
    ) -> None:
        self.acls = tuple(dict.fromkeys(acls))
        self.settings = settings or AuthorizerSettings()
        self._implies = _implies(kafka_version)
        self._literal: dict[tuple[str, str], list[Acl]] = {}
        self._prefixed: dict[str, dict[int, dict[str, list[Acl]]]] = {}  # by type, by length, by prefix
        for acl in self.acls:
            if acl.pattern_type == "literal":
                self._literal.setdefault((acl.resource_type, acl.resource_name), []).append(acl)
            elif acl.pattern_type == "prefixed":
                lengths = self._prefixed.setdefault(acl.resource_type, {})
                lengths.setdefault(len(acl.resource_name), {}).setdefault(acl.resource_name, []).append(acl)

    def rules_on(self, resource_type: str, name: str) -> Iterator[Acl]:
        """The rules about a resource, for whomever: by its name, by prefixes (the longest first), by `*`."""
        yield from self._literal.get((resource_type, name), ())
        lengths = self._prefixed.get(resource_type, {})
        for length in sorted((length for length in lengths if length <= len(name)), reverse=True):
            yield from lengths[length].get(name[:length], ())
        if name != WILDCARD:
            yield from self._literal.get((resource_type, WILDCARD), ())

    def decide(self, principal: str, operation: str, resource: Resource, host: str = WILDCARD) -> Decision:
        """What is decided for a principal at a host; `*` is a host that no rule names."""
        settings = self.settings
        if not settings.is_enabled:
            return Decision(True, "no_authorizer")
        if settings.super_users is not None and principal in settings.super_users:
            return Decision(True, "super_user")
        if_denied = Decision(False, "nothing")
        if settings.super_users is None:
            if_denied = Decision(None, "nothing", (SUPER_USERS,))
        allowing: Acl | None = None
        has_rules = False
        for acl in self.rules_on(resource.resource_type, resource.resource_name):
            has_rules = True
            if acl.principal not in (principal, EVERYBODY) or acl.host not in (host, WILDCARD):
                continue
            if acl.permission == "deny":
                if acl.operation in (operation, "all"):
                    return if_denied._replace(by=acl)
            elif (
                allowing is None
                and acl.permission == "allow"
                and acl.operation in ("all", *self._implies.get(operation, (operation,)))
            ):
                allowing = acl
        if allowing is not None:
            return Decision(True, allowing)
        if not has_rules and settings.allow_everyone is not False:
            if settings.allow_everyone:
                return Decision(True, "allow_everyone")
            return Decision(None, "nothing", (*if_denied.missing, ALLOW_EVERYONE))
        return if_denied

    def hosts_named(self, principal: str, resource: Resource) -> list[str]:
        """The hosts that rules for a principal name on a resource: from these a decision may be another one."""
        return sorted(
            {
                acl.host
                for acl in self.rules_on(resource.resource_type, resource.resource_name)
                if acl.host != WILDCARD and acl.principal in (principal, EVERYBODY)
            }
        )


def _implies(version: KafkaVersion | None) -> dict[str, tuple[str, ...]]:
    if version is None or version >= V0_11:
        return IMPLIES
    last = 4 if version >= V0_10_1 else 3
    return {"describe": IMPLIES["describe"][:last]}


def parse_super_users(text: str) -> frozenset[str]:
    """The principals of `super.users`, which semicolons separate."""
    return frozenset(name for part in text.split(";") if (name := part.strip()))
