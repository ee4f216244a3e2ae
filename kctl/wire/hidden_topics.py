"""Whether topics may exist that this user does not see.

Brokers leave topics out of the metadata that a user may not describe. The rules decide by the ACLs whose pattern matches
the name: the name itself, prefixes, and `*`. Names that the same patterns match are therefore all shown, or all
hidden, and one name of each set is enough. A broker answers about a name that no topic has too. Whoever the
user is, and what super users may do, is thus the broker's own judgement.

Source: KIP-290 (prefixed ACLs), KIP-11; metadata/src/main/java/org/apache/kafka/metadata/authorizer/StandardAuthorizerData.java,
core/src/main/scala/kafka/server/KafkaApis.scala (handleTopicMetadataRequest) @ 4.1.0
"""

import re
import secrets
from collections.abc import Collection, Iterable

from kafka.protocol.admin.acl import DescribeAclsRequest
from kafka.protocol.metadata import MetadataRequest

from kctl.cluster.reassignment.moves import some
from kctl.wire.adapter import TooOld, Wire, error_name
from kctl.wire.shortcuts.configs import BROKER, STATIC_BROKER, described, values_from

ANY, TOPIC, LITERAL, PREFIXED = 1, 2, 3, 4
NOT_AUTHORIZED, CLUSTER_AUTHORIZATION_FAILED, SECURITY_DISABLED = 29, 31, 54
EVERY_TOPIC = "*"
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


def why_topics_may_be_hidden(wire: Wire) -> str:
    """Why there may be topics that this user does not see, a clause with the missing right; "" if there can be none."""
    request = DescribeAclsRequest(
        resource_type_filter=TOPIC,
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
        return f"whether topics are hidden is unknown: {error.message}"
    if answer.error_code == SECURITY_DISABLED:
        return ""
    if answer.error_code == CLUSTER_AUTHORIZATION_FAILED:
        return "Describe on Cluster is missing: ACLs are not listed, so topics may be hidden"
    if answer.error_code:
        return f"whether topics are hidden is unknown: ACLs are not listed ({error_name(answer.error_code)})"
    patterns = {(int(each.pattern_type), str(each.resource_name)) for each in answer.resources}
    literal = {name for kind, name in patterns if kind == LITERAL and name != EVERY_TOPIC}
    prefixes = {name for kind, name in patterns if kind == PREFIXED}
    if why := _hidden(wire, literal, prefixes):
        return why
    return _other_rules(wire)


def _hidden(wire: Wire, literal: Collection[str], prefixes: Collection[str]) -> str:
    examples = {name: name for name in literal if is_topic_name(name)}
    examples |= {
        example: prefix
        for prefix in {"", *prefixes}
        if (example := example_of(prefix, literal, prefixes)) is not None
    }
    denied = sorted(_denied(wire, list(examples)))
    if any(not examples[example] for example in denied):
        return "Describe on Topic * is missing: topics may be hidden"
    names = [example for example in denied if examples[example] == example]
    starts = [examples[example] for example in denied if examples[example] != example]
    clauses = [f"on topics {some(names)}"] if names else []
    clauses += [f"on topics whose names begin with {some(starts)}"] if starts else []
    return f"Describe {' and '.join(clauses)} is missing: such topics may be hidden" if clauses else ""


def is_topic_name(name: str) -> bool:
    """Whether a topic can have this name."""
    return bool(re.fullmatch(r"[a-zA-Z0-9._-]{1,249}", name)) and name not in (".", "..")


def example_of(prefix: str, literal: Collection[str], prefixes: Iterable[str]) -> str | None:
    """A name that begins with a prefix and that no other pattern matches, shorter prefixes and `*` apart.

    None if no topic can have such a name.
    """
    if prefix and not is_topic_name(f"{prefix}0"[:LONGEST_NAME]):
        return None
    longer = [each for each in prefixes if each.startswith(prefix) and each != prefix]
    for _ in range(100):
        name = (prefix + secrets.token_hex(12))[:LONGEST_NAME]
        if name not in literal and not any(map(name.startswith, longer)):
            return name
    return None


def _denied(wire: Wire, names: list[str]) -> set[str]:
    """Those of the names that the user may not describe, whether such topics exist or not."""
    denied: set[str] = set()
    for first in range(0, len(names), NAMES_IN_A_REQUEST):
        topics = [
            MetadataRequest.MetadataRequestTopic(name=name)
            for name in names[first : first + NAMES_IN_A_REQUEST]
        ]
        answer = wire.read(MetadataRequest(topics=topics, allow_auto_topic_creation=False))
        denied |= {str(topic.name) for topic in answer.topics if topic.error_code == NOT_AUTHORIZED}
    return denied


def _other_rules(wire: Wire) -> str:
    """Why something else than ACLs may decide what this user sees; "" if nothing does."""
    (result,) = wire.send(described(BROKER, [str(wire.node)], [AUTHORIZER])).results
    if result.error_code == CLUSTER_AUTHORIZATION_FAILED:
        return "DescribeConfigs on Cluster is missing: which authorizer hides topics is not known"
    if result.error_code:
        return f"the authorizer of broker {wire.node} is unknown: {error_name(result.error_code)}"
    name = values_from(result, (STATIC_BROKER,)).get(AUTHORIZER)
    if name in BY_ACLS:
        return ""
    return f"the authorizer {name or 'of the brokers'} may hide topics by rules that are no ACLs"
