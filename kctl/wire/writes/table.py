"""The tables of requests that change something, and of what makes them of intents; each is imported when it is needed.

A request is a class of its name in the module that stands here, which has its sending and its checks. This module is
imported by none of them.
"""

from __future__ import annotations

from collections.abc import Iterable
from importlib import import_module
from typing import TYPE_CHECKING, Any

from formats import bounded_json
from kctl.changes.intents import SEVERAL
from kctl.errors import KctlError, Refused

if TYPE_CHECKING:
    from kctl.cluster.intent import Intent, Write
    from kctl.cluster.state import ClusterState
    from kctl.wire.adapter import Wire
    from kctl.wire.writes.requests import Request

REQUESTS = {
    "CreateTopics": "kctl.wire.writes.topics",
    "DeleteTopics": "kctl.wire.writes.topics",
    "CreatePartitions": "kctl.wire.writes.topics",
    "IncrementalAlterConfigs": "kctl.wire.writes.configs",
    "AlterClientQuotas": "kctl.wire.writes.configs",
    "AlterPartitionReassignments": "kctl.wire.writes.moves",
    "AlterReplicaLogDirs": "kctl.wire.writes.moves",
    "ElectLeaders": "kctl.wire.writes.elections",
    "AddRaftVoter": "kctl.wire.writes.kraft",
    "RemoveRaftVoter": "kctl.wire.writes.kraft",
    "UpdateFeatures": "kctl.wire.writes.kraft",
    "UnregisterBroker": "kctl.wire.writes.kraft",
    "WriteTxnMarkers": "kctl.wire.transactions",
    "DeleteRecords": "kctl.wire.records",
    "Produce": "kctl.wire.recovering.producing",
    "OffsetCommit": "kctl.wire.writes.groups",
    "OffsetDelete": "kctl.wire.writes.groups",
    "DeleteGroups": "kctl.wire.writes.groups",
    "LeaveGroup": "kctl.wire.writes.groups",
    "AlterShareGroupOffsets": "kctl.wire.writes.groups",
    "DeleteShareGroupOffsets": "kctl.wire.writes.groups",
    "CreateAcls": "kctl.wire.acls",
    "DeleteAcls": "kctl.wire.acls",
    "AlterUserScramCredentials": "kctl.wire.users",
    "CreateDelegationToken": "kctl.wire.writes.tokens",
    "RenewDelegationToken": "kctl.wire.writes.tokens",
    "ExpireDelegationToken": "kctl.wire.writes.tokens",
}
# What makes requests of an intent: of the state now, the intent, and the state that it was planned from.
TRANSLATIONS = {
    "create-topic": "kctl.wire.writes.topics:create_topic",
    "delete-topic": "kctl.wire.writes.topics:delete_topic",
    "add-partitions": "kctl.wire.writes.topics:add_partitions",
    "alter-config": "kctl.wire.writes.configs:alter_config",
    "clear-throttle": "kctl.wire.writes.configs:clear_throttle",
    "reassign": "kctl.wire.writes.moves:reassign",
    "alter-replica-log-dirs": "kctl.wire.writes.moves:alter_replica_log_dirs",
    "elect-preferred": "kctl.wire.writes.elections:elect_preferred",
    "elect-unclean": "kctl.wire.writes.elections:elect_unclean",
    "abort-transaction": "kctl.wire.transactions:abort_transaction",
    "delete-records": "kctl.wire.records:delete_records",
    "recover-records": "kctl.wire.recovering.producing:recover_records",
    "set-group-offsets": "kctl.wire.writes.groups:set_group_offsets",
    "delete-group": "kctl.wire.writes.groups:delete_group",
    "remove-members": "kctl.wire.writes.groups:remove_members",
    "add-voter": "kctl.wire.writes.kraft:change_voters",
    "remove-voter": "kctl.wire.writes.kraft:change_voters",
    "update-features": "kctl.wire.writes.kraft:update_features",
    "unregister-broker": "kctl.wire.writes.kraft:unregister_broker",
}
# What makes them of what brokers answer, and the intent.
ASKING_TRANSLATIONS = {
    "alter-acls": "kctl.wire.acls:alter_acls",
    "set-scram": "kctl.wire.users:set_scram",
    "delete-scram": "kctl.wire.users:delete_scram",
    "create-token": "kctl.wire.writes.tokens:create_token",
    "renew-token": "kctl.wire.writes.tokens:renew_token",
    "expire-token": "kctl.wire.writes.tokens:expire_token",
}
NO_REQUEST = {
    "move-controller": "no request moves the controller; restart it",
    "replace-stuck-reassignment": "brokers cancel a move that is stuck: leave --move-controller out",
}


def requests_of(intent: Intent, fresh: ClusterState, planned: ClusterState, wire: Wire) -> list[Request]:
    """The requests of an intent, in order; of several those of each. Raises Refused where there is no such request."""
    if intent.kind == SEVERAL:
        return [one for part in intent.parts for one in requests_of(part, fresh, planned, wire)]
    if intent.kind == "wait-until":
        return []
    if (why := NO_REQUEST.get(intent.kind)) is not None:
        raise Refused(
            f"{intent}: {why}; nothing was written", "use --zookeeper, or a Kafka tool of that version"
        )
    if (asking := ASKING_TRANSLATIONS.get(intent.kind)) is not None:
        return list(_named(asking)(wire, intent))
    made: Iterable[Request] = _named(TRANSLATIONS[intent.kind])(fresh, intent, planned)
    return list(made)


def _named(place: str) -> Any:
    module, _, name = place.partition(":")
    return getattr(import_module(module), name)


def request_of(write: Write) -> Request:
    """The request of a write that may come from the journal. Raises KctlError."""
    from kctl.wire.writes.requests import Request

    return write if isinstance(write, Request) else read_request(write.target, write.before, write.after)


def read_request(target: str, before: bytes | str | None, after: bytes | str | None) -> Request:
    """The request of these texts, as the journal has them. Raises KctlError for another one than those of the table."""
    name, _, about = target.partition(" ")
    try:
        request: type[Request] = _named(f"{REQUESTS[name]}:{name}")
        expectation = None if before is None else bounded_json.loads(before)
        return request.read(about, bounded_json.loads(after or "{}"), expectation)
    except (KeyError, TypeError, ValueError) as error:
        raise KctlError(
            f"{target}: the journal has no request here that this kctl knows ({error})",
            "use the kctl that wrote the journal entry",
        ) from None
