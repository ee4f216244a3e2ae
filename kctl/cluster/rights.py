"""Rights of a user: an operation on a resource, and what to say where one is missing.

Source: core/src/main/scala/kafka/admin/AclCommand.scala @ 2.8.2 (options of the command); KIP-11, KIP-290
"""

from collections.abc import Collection
from shlex import quote
from typing import NamedTuple

from kctl.errors import KctlError

CLUSTER, TOPIC, GROUP, TRANSACTIONAL_ID, DELEGATION_TOKEN = (
    "Cluster",
    "Topic",
    "Group",
    "TransactionalId",
    "DelegationToken",
)
# The error of brokers that names the kind of resource.
RESOURCES = {29: TOPIC, 30: GROUP, 31: CLUSTER, 53: TRANSACTIONAL_ID, 65: DELEGATION_TOKEN}
OPTIONS = {
    CLUSTER: "--cluster",
    TOPIC: "--topic",
    GROUP: "--group",
    TRANSACTIONAL_ID: "--transactional-id",
    DELEGATION_TOKEN: "--delegation-token",
}
UNKNOWN_PRINCIPAL = "this connection's principal"
# The hint where ZooKeeper refuses something.
CREDENTIALS = "its access list shows who may: set the credentials of one of them in the context"


class Right(NamedTuple):
    """An operation on a resource, with Kafka's names. The cluster has no name."""

    operation: str
    resource: str = CLUSTER
    name: str = ""

    def __str__(self) -> str:
        """`Describe on Cluster`, `Read on Topic orders`."""
        return f"{self.operation} on {self.resource}{self.name and f' {self.name}'}"


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
    """What gives the rights, with the command line of Kafka's tool for the first of them."""
    first = next(iter(rights))
    name = f" {quote(first.name)}" if first.name else ""
    who = "USER" if principal == UNKNOWN_PRINCIPAL else quote(principal)
    command = f"kafka-acls --add --allow-principal {who} --operation {first.operation} {OPTIONS[first.resource]}{name}"
    more = ", and so for the others" if len(rights) > 1 else ""
    return f"grant it (`{command}`{more}), or run as another user"
