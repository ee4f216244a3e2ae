"""The table of what can be changed: a kind of change a line, its class imported when it is needed.

A kind is a class in `kctl/changes/kinds/`, in the file of its subject; the journal has its name and its fields.
"""

from collections.abc import Iterable, Mapping
from importlib import import_module
from typing import ClassVar

from kctl.cluster.intent import Intent, IntentCodec, Waited
from kctl.cluster.state import ClusterState
from kctl.model import Json

KINDS = {
    "create-topic": "kctl.changes.kinds.topics:CreateTopic",
    "delete-topic": "kctl.changes.kinds.topics:DeleteTopic",
    "add-partitions": "kctl.changes.kinds.topics:AddPartitions",
    "alter-config": "kctl.changes.kinds.configs:AlterConfig",
    "wait-until": "kctl.changes.kinds.configs:WaitUntil",
    "reassign": "kctl.changes.kinds.reassignments:Reassign",
    "alter-replica-log-dirs": "kctl.changes.kinds.reassignments:AlterReplicaLogDirs",
    "replace-stuck-reassignment": "kctl.changes.kinds.reassignments:ReplaceStuckReassignment",
    "clear-throttle": "kctl.changes.kinds.throttles:ClearThrottle",
    "elect-preferred": "kctl.changes.kinds.elections:ElectPreferred",
    "elect-unclean": "kctl.changes.kinds.elections:ElectUnclean",
    "move-controller": "kctl.changes.kinds.elections:MoveController",
    "abort-transaction": "kctl.changes.kinds.records:AbortTransaction",
    "delete-records": "kctl.changes.kinds.records:DeleteRecords",
    "recover-records": "kctl.changes.kinds.records:RecoverRecords",
    "set-group-offsets": "kctl.changes.kinds.groups:SetGroupOffsets",
    "delete-group": "kctl.changes.kinds.groups:DeleteGroup",
    "remove-members": "kctl.changes.kinds.groups:RemoveMembers",
    "add-voter": "kctl.changes.kinds.quorum:AddVoter",
    "remove-voter": "kctl.changes.kinds.quorum:RemoveVoter",
    "update-features": "kctl.changes.kinds.quorum:UpdateFeatures",
    "unregister-broker": "kctl.changes.kinds.quorum:UnregisterBroker",
    "alter-acls": "kctl.changes.kinds.access:AlterAcls",
    "set-scram": "kctl.changes.kinds.access:SetScram",
    "delete-scram": "kctl.changes.kinds.access:DeleteScram",
    "create-token": "kctl.changes.kinds.tokens:CreateToken",
    "renew-token": "kctl.changes.kinds.tokens:RenewToken",
    "expire-token": "kctl.changes.kinds.tokens:ExpireToken",
}
SEVERAL = "several"


def class_of(kind: str) -> type[Intent]:
    """The class of a kind. Raises KeyError for none."""
    if kind == SEVERAL:
        return Several
    module, name = KINDS[kind].split(":")
    intent_class: type[Intent] = getattr(import_module(module), name)
    return intent_class


def intent_from_json(values: Mapping[str, Json]) -> Intent:
    """The intent of a journal entry."""
    return class_of(str(values["kind"])).from_json(values)


def intent_to_json(intent: Intent) -> dict[str, Json]:
    """The intent for a journal entry, `kind` first."""
    return {"kind": intent.kind, **intent.to_json()}


class Several(Intent, frozen=True, kw_only=True):
    """Intents of one kind that are carried out together, in order: one transaction, or one request after the other.

    Inverse: the inverses, the last one first. A method of `Intent` that is not here answers as `Intent` does, whatever the
    parts would: its callers ask each of `parts`, or it has to be added here.
    """

    kind: ClassVar[str] = SEVERAL
    codecs: ClassVar[Mapping[str, IntentCodec]] = {
        "parts": IntentCodec(
            lambda value: [intent_to_json(part) for part in value],
            lambda value: tuple(intent_from_json(part) for part in value),
        )
    }
    parts: tuple[Intent, ...]

    def __str__(self) -> str:
        more = len(self.parts) - 1
        return f"{self.parts[0]}{f' and {more:,} more' if more else ''}"

    def inverse(self) -> Intent:
        return Several(parts=tuple(part.inverse() for part in reversed(self.parts)))

    def topics_concerned(self) -> set[str] | None:
        names = [part.topics_concerned() for part in self.parts]
        return None if None in names else set().union(*filter(None, names))

    def config_types(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(kind for part in self.parts for kind in part.config_types()))

    def how_far(self, state: ClusterState) -> Waited:
        return _of_all([part.how_far(state) for part in self.parts])

    def is_visible(self) -> bool:
        return all(part.is_visible() for part in self.parts)

    @property
    def is_forgotten(self) -> bool:
        return any(part.is_forgotten for part in self.parts)


def _of_all(parts: Iterable[Waited]) -> Waited:
    waits = tuple(parts)
    return Waited(
        sum(part.finished for part in waits),
        sum(part.total for part in waits),
        tuple(line for part in waits for line in part.missing),
        next((part.failed for part in waits if part.failed), ""),
    )
