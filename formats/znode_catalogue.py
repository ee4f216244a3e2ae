"""Every znode of Kafka: its path, who writes it, since when, what it is, and its content in words. One table.

A new znode is one more row here. Children of a path that is no row itself are unknown to Kafka.
"""

import re
from collections.abc import Callable, Mapping
from typing import NamedTuple

from formats import znode_words as words

Words = Callable[[Mapping[str, str], bytes], list[str]]


class ZnodeKind(NamedTuple):
    """A row: `pattern` matches whole paths below the chroot; `words` raises FormatError for wrong content."""

    name: str
    pattern: re.Pattern[str]
    written_by: str
    since: str
    what: str
    words: Words


def _row(name: str, path: str, written_by: str, since: str, what: str, say: Words) -> ZnodeKind:
    pattern = re.sub(r"<(\w+)>", r"(?P<\1>[^/]+)", path)
    return ZnodeKind(name, re.compile(pattern), written_by, since, what, say)


KINDS: tuple[ZnodeKind, ...] = (
    _row("broker", "/brokers/ids/<id>", "the broker", "0.8", "A live broker.", words.broker),
    _row(
        "broker id counter",
        "/brokers/seqid",
        "brokers",
        "0.9",
        "Its version counts the ids given.",
        words.nothing,
    ),
    _row(
        "topic", "/brokers/topics/<topic>", "tools, the controller", "0.8", "A topic's replicas.", words.topic
    ),
    _row(
        "partition state",
        "/brokers/topics/<topic>/partitions/<partition>/state",
        "the controller; leaders too before 2.7",
        "0.8",
        "Who leads a partition, and its ISR.",
        words.partition_state,
    ),
    _row(
        "controller", "/controller", "the controller", "0.8", "Which broker is controller.", words.controller
    ),
    _row(
        "controller epoch", "/controller_epoch", "the controller", "0.8", "Counts controllers.", words.number
    ),
    _row(
        "reassignment request",
        "/admin/reassign_partitions",
        "tools; the controller takes entries off",
        "0.8",
        "Partitions that the controller is to move. Deleting it cancels nothing.",
        words.reassignment,
    ),
    _row(
        "preferred election request",
        "/admin/preferred_replica_election",
        "tools; the controller deletes it",
        "0.8",
        "Partitions whose first replica is to lead.",
        words.election,
    ),
    _row(
        "deletion request",
        "/admin/delete_topics/<topic>",
        "tools; the controller deletes it",
        "0.8.1",
        "A topic that is to be deleted.",
        words.deletion,
    ),
    _row(
        "configuration notification",
        "/config/changes/config_change_<number>",
        "tools, brokers",
        "0.8.1",
        "Tells brokers to read a configuration again; gone after 15 minutes.",
        words.config_change,
    ),
    _row(
        "client's configuration of a user",
        "/config/users/<user>/clients/<name>",
        "tools, brokers",
        "0.10.1",
        "Quotas of one user's client.",
        words.config,
    ),
    _row(
        "configuration",
        "/config/<type>/<name>",
        "tools, brokers",
        "0.8.1",
        "What was set for it.",
        words.config,
    ),
    _row(
        "ISR notification",
        "/isr_change_notification/isr_change_<number>",
        "leaders before 2.7",
        "0.9",
        "Partitions whose ISR has changed.",
        words.isr_change,
    ),
    _row(
        "log directory notification",
        "/log_dir_event_notification/log_dir_event_<number>",
        "a broker",
        "1.0",
        "A broker has lost a log directory.",
        words.log_dir_event,
    ),
    _row("cluster id", "/cluster/id", "the first broker", "0.10.1", "The cluster's id.", words.cluster_id),
    _row("features", "/feature", "the controller", "2.7", "Finalised features.", words.feature),
    _row(
        "producer id block",
        "/latest_producer_id_block",
        "transaction coordinators",
        "0.11",
        "The producer ids that were given out last.",
        words.producer_id_block,
    ),
    _row("migration", "/migration", "a KRaft controller", "3.4", "The migration to KRaft.", words.migration),
    _row("ACL", "/kafka-acl/<type>/<name>", "the authorizer", "0.9", "Rules of a resource.", words.acl),
    _row(
        "prefixed ACL",
        "/kafka-acl-extended/prefixed/<type>/<name>",
        "the authorizer",
        "2.0",
        "Rules of all resources whose names begin so.",
        words.acl,
    ),
    _row(
        "ACL notification",
        "/kafka-acl(?:-extended)?-changes/acl_changes_<number>",
        "the authorizer",
        "0.9",
        "Tells brokers to read rules again.",
        words.plain,
    ),
    _row(
        "delegation token",
        "/delegation_token/tokens/<token>",
        "brokers",
        "1.1",
        "A delegation token.",
        words.delegation_token,
    ),
    _row(
        "token notification",
        "/delegation_token/token_changes/token_change_<number>",
        "brokers",
        "1.1",
        "Tells brokers to read a token again.",
        words.plain,
    ),
    _row(
        "old consumer",
        "/consumers/<group>/ids/<id>",
        "the consumer",
        "0.8",
        "A live old consumer.",
        words.consumer,
    ),
    _row(
        "old consumer's partition",
        "/consumers/<group>/owners/<topic>/<partition>",
        "the consumer",
        "0.8",
        "Which thread of a group reads a partition.",
        words.owner,
    ),
    _row(
        "old consumer's offset",
        "/consumers/<group>/offsets/<topic>/<partition>",
        "the consumer",
        "0.8",
        "The next offset that a group reads.",
        words.offset,
    ),
)


def kind_of_znode(path: str) -> tuple[ZnodeKind, dict[str, str]] | None:
    """The row of a path below the chroot, and the names in the path; None for a folder or a stranger."""
    for kind in KINDS:
        if found := kind.pattern.fullmatch(path):
            return kind, found.groupdict()
    return None
