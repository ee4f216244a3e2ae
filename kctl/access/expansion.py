"""What `--producer`, `--consumer` and `--idempotent` of kafka-acls stand for.

Source: tools/src/main/java/org/apache/kafka/tools/AclCommand.java @ 3.9.0-rc3; core/src/main/scala/kafka/admin/AclCommand.scala
@ 1.1.1 (creating topics was a right on the cluster before 2.0: KIP-277)
"""

from collections.abc import Iterable, Iterator, Sequence

from kctl.access.acl import CLUSTER, OPERATIONS_OF, WILDCARD, Acl
from kctl.cluster.versions import V2_0, KafkaVersion
from kctl.errors import BadValue

Named = Sequence[tuple[str, str]]  # type and name of resources


def expanded(
    resources: Named, *, producer: bool, consumer: bool, idempotent: bool, version: KafkaVersion | None
) -> Iterator[tuple[str, str, str]]:
    """Type and name of a resource, and an operation, of each rule. Raises BadValue where a resource is missing."""
    is_old = version is not None and version < V2_0
    topics, groups, ids = (
        [name for kind, name in resources if kind == wanted]
        for wanted in ("topic", "group", "transactional_id")
    )
    if not topics and (producer or consumer):
        raise BadValue("--producer and --consumer need a topic", "give --topic TOPIC")
    if consumer and not groups:
        raise BadValue("--consumer needs a group", "give --group GROUP")
    for topic in topics if producer else ():
        yield from (("topic", topic, operation) for operation in ("write", "describe"))
        if not is_old:
            yield "topic", topic, "create"
    if producer and is_old:
        yield "cluster", CLUSTER, "create"
    for name in ids if producer else ():
        yield from (("transactional_id", name, operation) for operation in ("write", "describe"))
    if idempotent:
        yield "cluster", CLUSTER, "idempotent_write"
    for topic in topics if consumer else ():
        yield from (("topic", topic, operation) for operation in ("read", "describe"))
    for group in groups if consumer else ():
        yield "group", group, "read"


def rules_of(
    principals: Iterable[str],
    subjects: Iterable[tuple[str, str, str]],
    *,
    pattern: str,
    hosts: Iterable[str],
    permission: str,
) -> list[Acl]:
    """A rule for each principal, host, resource and operation. Raises BadValue for an operation that is none there."""
    acls = []
    listed, places = list(principals), list(hosts) or [WILDCARD]
    for kind, name, operation in subjects:
        if operation != "all" and operation not in OPERATIONS_OF[kind]:
            raise BadValue(
                f"there is no {operation} on a {kind}", f"it is one of all, {', '.join(OPERATIONS_OF[kind])}"
            )
        if not name:
            raise BadValue(f"a {kind} without a name", "give a name, or `*`")
        if pattern == "prefixed" and name == WILDCARD:
            raise BadValue(
                "a prefix `*` means names that begin with a star", "use --pattern literal with `*`"
            )
        kept = "literal" if kind == "cluster" else pattern
        acls += [
            Acl(kind, name, kept, principal, host, operation, permission)
            for principal in listed
            for host in places
        ]
    return list(dict.fromkeys(acls))
