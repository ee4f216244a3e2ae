"""Rights of a user: an operation on a resource, and what to say where one is missing.

Source: KIP-11, KIP-290
"""

import re
from collections.abc import Collection
from shlex import quote
from typing import NamedTuple

from kctl.errors import KctlError

CLUSTER, TOPIC, GROUP, TRANSACTIONAL_ID, DELEGATION_TOKEN, USER = (
    "Cluster",
    "Topic",
    "Group",
    "TransactionalId",
    "DelegationToken",
    "User",
)
# The error of brokers that names the kind of resource.
RESOURCES = {29: TOPIC, 30: GROUP, 31: CLUSTER, 53: TRANSACTIONAL_ID, 65: DELEGATION_TOKEN}
OPTIONS = {
    CLUSTER: "--cluster",
    TOPIC: "--topic",
    GROUP: "--group",
    TRANSACTIONAL_ID: "--transactional-id",
    DELEGATION_TOKEN: "--delegation-token",
    USER: "--user-principal",
}
UNKNOWN_PRINCIPAL = "this connection's principal"
# The hint where ZooKeeper refuses something.
CREDENTIALS = "its access list shows who may: set the credentials of one of them in the context"


class Right(NamedTuple):
    """An operation on a resource, with Kafka's names. The cluster has no name; `is_prefix`: on all whose names begin so."""

    operation: str
    resource: str = CLUSTER
    name: str = ""
    is_prefix: bool = False

    def __str__(self) -> str:
        """`Describe on Cluster`, `Read on Topic orders`."""
        return f"{self.operation} on {self.resource}{self.name and f' {self.name}'}{'*' * self.is_prefix}"


class MissingRight(KctlError):
    """A broker refuses something to this user."""

    hint = "grant the right, or run as another user"

    def __init__(self, right: Right, principal: str, place: str = "") -> None:
        super().__init__(f"{place}{place and ': '}{missing(right, principal)}", grant([right], principal))
        self.right, self.principal = right, principal


def missing(right: object, principal: str) -> str:
    """`Describe on Cluster is missing for User:ann`."""
    return f"{right} is missing for {principal}"


def grant(rights: Collection[Right], principal: str) -> str:
    """What gives the rights, with the command line for the first of them."""
    first = next(iter(rights))
    more = ", and so for the others" if len(rights) > 1 else ""
    return f"grant it (`{command_for(first, principal)}`{more}), or run as another user"


def command_for(right: Right, principal: str) -> str:
    """The command line by which an administrator grants a right; `TYPE:NAME` stands for a principal that is not known."""
    who = "TYPE:NAME" if principal == UNKNOWN_PRINCIPAL else quote(principal)
    operation = "_".join(re.findall("[A-Z][a-z]*", right.operation)).lower()
    option = OPTIONS[right.resource]
    names = right.name.split(", ") if right.resource == TOPIC else [right.name]  # they are said together
    named = "".join(f" {option} {quote(name)}" for name in names if name)
    pattern = " --pattern prefixed" if right.is_prefix else ""
    return f"kctl acl create --principal {who} --operation {operation}{named or f' {option}'}{pattern}"
