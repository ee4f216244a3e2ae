"""Whether topics, groups or transactional ids may exist that this user does not see.

Brokers leave topics out of the metadata that a user may not describe. The rules decide by the ACLs whose pattern matches
the name: the name itself, prefixes, and `*`. Names that the same patterns match are therefore all shown, or all
hidden, and one name of each set is enough. A broker answers about a name that no topic has too. Whoever the
user is, and what super users may do, is thus the broker's own judgement.

Source: KIP-290 (prefixed ACLs), KIP-11; metadata/src/main/java/org/apache/kafka/metadata/authorizer/StandardAuthorizerData.java,
core/src/main/scala/kafka/server/KafkaApis.scala (handleTopicMetadataRequest) @ 4.1.0
"""

import re
import secrets
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from typing import NamedTuple

from kctl.cluster.interface import Visibility
from kctl.cluster.rights import RESOURCES, TOPIC, TRANSACTIONAL_ID, Right, missing
from kctl.model import some
from kctl.wire.adapter import TooOld, Wire
from kctl.wire.answers.configs import BROKER, STATIC_BROKER, described, values_from
from kctl.wire.protocol.messages import DescribeGroupsRequest, DescribeTransactionsRequest, MetadataRequest
from kctl.wire.rights import failure, right_for

ANY, LITERAL, PREFIXED = 1, 3, 4
SECURITY_DISABLED = 54
DESCRIBE = 8  # the number of the operation
EVERY_NAME = "*"
LONGEST_NAME = 249
NAMES_IN_A_REQUEST = 1000
AUTHORIZER = "authorizer.class.name"
# Those that decide by ACLs alone.
BY_ACLS = frozenset(
    {
        "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "kafka.security.authorizer.AclAuthorizer",
        "kafka.security.auth.SimpleAclAuthorizer",
    }
)


def why_offsets_may_be_hidden(wire: Wire) -> str:
    """Why a group may have offsets that this user does not see: brokers leave out those of hidden topics."""
    return offsets_hidden(visibility_of(wire).hidden)


def offsets_hidden(why_topics: str) -> str:
    """The same, by why topics may be hidden; "" where none are."""
    return f"offsets of groups in hidden topics are left out: {why_topics}" if why_topics else ""


class Kind(NamedTuple):
    """A kind of resource: Kafka's number of it, its name, the noun for people, and what asks for names."""

    number: int
    resource: str
    noun: str
    denied: Callable[[Wire, Sequence[str]], Iterator[str]]


def visibility_of(wire: Wire, noun: str = "topics") -> Visibility:
    """Whether there may be topics, or transactional ids, that this user does not see, with the missing right."""
    from kctl.wire.protocol.messages import DescribeAclsRequest  # few commands need it

    kind = KINDS[noun]
    request = DescribeAclsRequest(
        resource_type_filter=kind.number,
        resource_name_filter=None,
        pattern_type_filter=ANY,
        principal_filter=None,
        host_filter=None,
        operation=ANY,
        permission_type=ANY,
    )
    try:
        answer = wire.read(request)
    except TooOld as error:
        return Visibility(_hidden(wire, kind, (), ()), error.message)
    if answer.error_code == SECURITY_DISABLED:
        return Visibility()
    if answer.error_code:
        why = failure(wire, f"ACLs, which may hide {noun}", "DescribeAcls", answer.error_code)
        return Visibility(_hidden(wire, kind, (), ()), why.message)
    patterns = {(int(each.pattern_type), str(each.resource_name)) for each in answer.resources}
    literal = {name for pattern, name in patterns if pattern == LITERAL and name != EVERY_NAME}
    prefixes = {name for pattern, name in patterns if pattern == PREFIXED}
    return Visibility(_hidden(wire, kind, literal, prefixes), _other_rules(wire, noun))


def _hidden(wire: Wire, kind: Kind, literal: Collection[str], prefixes: Collection[str]) -> str:
    """Which names are hidden, of those that patterns tell apart, with the missing right."""
    examples = {name: name for name in literal if is_topic_name(name) or kind.resource != TOPIC}
    examples |= {
        example: prefix
        for prefix in {"", *prefixes}
        if is_topic_name(f"{prefix}0"[:LONGEST_NAME]) or kind.resource != TOPIC
        if (example := example_of(prefix, literal, prefixes)) is not None
    }
    names = list(examples)
    denied = sorted(
        name
        for first in range(0, len(names), NAMES_IN_A_REQUEST)
        for name in kind.denied(wire, names[first : first + NAMES_IN_A_REQUEST])
    )
    if any(not examples[example] for example in denied):
        return f"{missing(Right('Describe', kind.resource, '*'), wire.principal)}: {kind.noun} may be hidden"
    whole = [example for example in denied if examples[example] == example]
    starts = [examples[example] for example in denied if examples[example] != example]
    clauses = [f"on {kind.noun} {some(whole)}"] if whole else []
    clauses += [f"on {kind.noun} whose names begin with {some(starts)}"] if starts else []
    what = f"Describe {' and '.join(clauses)}"
    return f"{missing(what, wire.principal)}: such {kind.noun} may be hidden" if clauses else ""


def why_groups_may_be_hidden(wire: Wire, *, strict: bool = False) -> str:
    """Why there may be groups that this user does not see, a clause with the missing right; "" without a sign of that.

    `strict`: "" only if there can be none.

    A user that may describe the cluster sees all groups, others those that they may describe.

    Source: KafkaApis.scala (handleListGroupsRequest, handleDescribeGroupsRequest) @ 4.1.0
    """
    answer = wire.read(
        MetadataRequest(topics=[], include_cluster_authorized_operations=True, min_version=8, max_version=10)
    )
    if answer.cluster_authorized_operations >= 0 and answer.cluster_authorized_operations >> DESCRIBE & 1:
        return ""
    if strict:
        return f"{missing(Right('Describe'), wire.principal)}: groups may be hidden"
    name = f"kctl-{secrets.token_hex(12)}"
    (group,) = wire.read(DescribeGroupsRequest(groups=[name])).groups
    if (right := right_for("DescribeGroups", group.error_code, "*")) is None:
        return ""
    what = f"{right}, or {Right('Describe')},"
    return f"{missing(what, wire.principal)}: groups may be hidden"


def is_topic_name(name: str) -> bool:
    """Whether a topic can have this name."""
    return bool(re.fullmatch(r"[a-zA-Z0-9._-]{1,249}", name)) and name not in (".", "..")


def example_of(prefix: str, literal: Collection[str], prefixes: Iterable[str]) -> str | None:
    """A name that begins with a prefix and that no other pattern matches, shorter prefixes and `*` apart.

    None if there is none of a length that topics can have.
    """
    longer = [each for each in prefixes if each.startswith(prefix) and each != prefix]
    for _ in range(100):
        name = (prefix + secrets.token_hex(12))[:LONGEST_NAME]
        if name not in literal and not any(map(name.startswith, longer)):
            return name
    return None


def _denied_topics(wire: Wire, names: Sequence[str]) -> Iterator[str]:
    """Those that the user may not describe, whether such topics exist or not."""
    topics = [MetadataRequest.MetadataRequestTopic(name=name) for name in names]
    answer = wire.read(MetadataRequest(topics=topics, allow_auto_topic_creation=False))
    yield from (str(topic.name) for topic in answer.topics if topic.error_code in RESOURCES)


def _denied_ids(wire: Wire, names: Sequence[str]) -> Iterator[str]:
    """The same for transactional ids; any broker says so before it says that it is not the coordinator."""
    answer = wire.read(DescribeTransactionsRequest(transactional_ids=list(names)))
    for state in answer.transaction_states:
        if state.error_code in RESOURCES:
            yield str(state.transactional_id)


KINDS = {
    "topics": Kind(2, TOPIC, "topics", _denied_topics),
    "transactional ids": Kind(5, TRANSACTIONAL_ID, "transactional ids", _denied_ids),
}


def _other_rules(wire: Wire, noun: str) -> str:
    """Why something else than ACLs may decide what this user sees; "" if nothing does."""
    (result,) = wire.send(described(BROKER, [str(wire.node)], [AUTHORIZER])).results
    if result.error_code:
        place = f"the authorizer, which may hide {noun}"
        return failure(wire, place, "DescribeConfigs", result.error_code).message
    name = values_from(result, (STATIC_BROKER,)).get(AUTHORIZER)
    if name in BY_ACLS:
        return ""
    return f"the authorizer {name or 'of the brokers'} may hide {noun} by rules that are no ACLs"
