"""Compare the metadata in ZooKeeper and KRaft, and tell which differences are expected.

A difference is explained by an offset (the metadata log changed it after the copy, and after what ZooKeeper has), or
by a time (its znode was written after the metadata log ends). An unexplained difference is an error: something is lost or wrong.
"""

from collections import Counter
from collections.abc import Iterator

from formats.secrets import REDACTED
from formats.values import Struct, field
from kctl.migration.entities import (
    COMPARED_TYPES,
    LEADERSHIP,
    NEXT_PRODUCER_ID,
    PRESENT,
    WHOLE,
    Entity,
    Value,
    is_equal,
)
from kctl.migration.kraft_side import KraftSide
from kctl.migration.phase import MigrationStatus, Phase
from kctl.migration.zookeeper_side import UNREADABLE, ZookeeperSide

ERROR, INFO = "error", "info"
DIRECTORIES = "directories"  # of a partition; ZooKeeper has none, and the KRaft side only offline ones


Verdict = tuple[str, str] | tuple[str, str, bool]
"""Severity and reason; and True where whether something was lost could not be told."""
ELECTED = "leaders and ISR change with every restart of a broker; the leader epoch did not go back"


class Difference(Struct, frozen=True):
    """A difference between the two sides."""

    entity: Entity
    field: str | None
    zookeeper: Value
    kraft: Value
    severity: str
    reason: str
    is_open: bool = False  # it is unknown whether something was lost


class ComparedEntities(Struct):
    """The numbers of compared fields of a type of entities, and the results."""

    entity_type: str
    zookeeper: int = 0  # entities
    kraft: int = 0
    fields: int = 0
    equal: int = 0
    by_severity: Counter[str] = field(default_factory=Counter)  # by severity
    not_compared: int = 0


class Comparison:
    """The comparison of two sides. `compared` is complete when `differences` has been iterated to its end."""

    def __init__(self, znodes: ZookeeperSide, kraft: KraftSide, status: MigrationStatus) -> None:
        self.znodes, self.kraft, self.status = znodes, kraft, status
        self.compared = {kind: ComparedEntities(kind) for kind in COMPARED_TYPES}
        self._lists: dict[str, bool] = {}

    def differences(self) -> Iterator[Difference]:
        """The differences, by type of entity, entity and field."""
        ours, theirs = self.znodes.entities, self.kraft.entities
        order = {kind: place for place, kind in enumerate(COMPARED_TYPES)}
        for entity in sorted(
            {*ours, *theirs}, key=lambda entity: (order[entity.type], _natural(entity.name))
        ):
            count = self.compared[entity.type]
            count.zookeeper += entity in ours
            count.kraft += entity in theirs
            for difference in self._of_entity(entity, count):
                count.by_severity[difference.severity] += 1
                yield difference

    def _of_entity(self, entity: Entity, count: ComparedEntities) -> Iterator[Difference]:
        zookeeper, kraft = self.znodes.entities.get(entity), self.kraft.entities.get(entity)
        why = self.znodes.withheld.get((entity, None))
        if why is not None and (kraft is not None or entity.type not in WHOLE):
            count.not_compared += 1
            yield _not_compared(entity, None, PRESENT if kraft is not None else None, why)
            return
        if self._belongs_to_difference(entity):
            return
        if entity.type in WHOLE and (zookeeper is None or kraft is None):
            count.fields += 1
            has = [None if side is None else PRESENT for side in (zookeeper, kraft)]
            yield self._judged(entity, None, *has)
            return
        fields = zookeeper or {}, kraft or {}
        for name in sorted({*fields[0], *fields[1]}):
            if (
                entity.type == "partition"
                and name != DIRECTORIES
                and not all(name in side for side in fields)
            ):
                continue  # a partition without a state has never been led
            ours, theirs = (side.get(name) for side in fields)
            why = self.znodes.withheld.get((entity, name))
            if REDACTED in (ours, theirs) and ours is not None and theirs is not None:
                why = "ZooKeeper has it encrypted"
            if why is not None and theirs is not None:
                count.not_compared += 1
                yield _not_compared(entity, name, theirs, why)
                continue
            count.fields += 1
            if is_equal(name, ours, theirs):
                count.equal += 1
            else:
                yield self._judged(entity, name, REDACTED if why is not None else ours, theirs)

    def _belongs_to_difference(self, entity: Entity) -> bool:
        """Whether it belongs to a topic that one side lacks or that could not be read, which is one difference."""
        if entity.type == "topic" or entity.topic is None:
            return False
        topic = Entity("topic", entity.topic)
        has = [topic in side.entities for side in (self.znodes, self.kraft)]
        return not all(has) or (topic, None) in self.znodes.withheld

    def _judged(self, entity: Entity, name: str | None, zookeeper: Value, kraft: Value) -> Difference:
        severity, reason, *is_open = self._why(entity, name, zookeeper, kraft)
        return Difference(entity, name, zookeeper, kraft, severity, reason, bool(is_open))

    # --- reasons--------------------------------------------------------------------------------------

    def _why(self, entity: Entity, name: str | None, zookeeper: Value, kraft: Value) -> Verdict:
        if entity.type == "feature":
            return INFO, "features are KRaft's own; ZooKeeper brokers go by inter.broker.protocol.version"
        if entity.type == "config" and entity.name.partition(" ")[0] not in ("topic", "broker"):
            return INFO, "a kind of configuration that ZooKeeper does not have"
        if name == DIRECTORIES:
            return INFO, "a broker has not registered the log directory of its replica, which is offline"
        if name == "topic_id" and zookeeper is None:
            return INFO, "the znode has none; KRaft gives one"
        if entity.type == "broker" and (explained := self._why_broker(entity, zookeeper)):
            return explained
        lower = self._went_back(name, zookeeper, kraft)
        if lower is None and self.is_log_older and self._is_newer(entity):
            return INFO, "ZooKeeper was changed after the metadata log ends"
        if lower is not None:
            return ERROR, lower
        if zookeeper is None and self.is_log_older and self._is_list_changed(entity.type):
            return (
                INFO,
                "not in ZooKeeper: removed after the metadata log ends, or lost; this is undecided",
                True,
            )
        changed = self.kraft.history.last(entity, name)
        did = "removed" if kraft is None else "created" if zookeeper is None else "changed"
        if self.status.phase is Phase.ROLLED_BACK:
            return self._why_rolled_back(name, did, changed)
        if self.status.is_export_older:
            return self._why_older(name, did, changed)
        return self._why_claimed(name, did, changed)

    def _why_claimed(self, name: str | None, did: str, changed: int | None) -> Verdict:
        """The verdict for znodes that the KRaft controller writes, or wrote up to the end of the migration."""
        reached = self.kraft.image.end_offset if self.znodes.reached is None else self.znodes.reached
        if changed is not None and changed > reached:
            return INFO, f"{did} in KRaft at offset {changed}; ZooKeeper has the log up to {reached}"
        if self.status.phase is Phase.FINALIZED:
            if changed is not None:
                return (
                    INFO,
                    f"{did} in KRaft at offset {changed}, and never in ZooKeeper, which no longer counts",
                )
            if did == "created":
                return INFO, "in KRaft only; ZooKeeper no longer counts"
            return (INFO, ELECTED) if name in LEADERSHIP else (ERROR, self._unexplained(did))
        if changed is None:
            return ERROR, self._unexplained(did)
        where = f"at offset {changed} and not in ZooKeeper, which has the log up to {reached}"
        return ERROR, f"{did} in KRaft {where}: a rollback would undo it"

    def _why_older(self, name: str | None, did: str, changed: int | None) -> Verdict:
        """The verdict for znodes from before the copy: KRaft must have their content, or have changed it since."""
        if changed is not None:
            return INFO, f"{did} in KRaft at offset {changed}, after the copy"
        if did == "created":
            return INFO, "created after the export"
        if name in LEADERSHIP:
            return INFO, ELECTED
        if name == NEXT_PRODUCER_ID:
            return INFO, "producer ids were given out after the export"
        return ERROR, self._unexplained(did)

    def _why_rolled_back(self, name: str | None, did: str, changed: int | None) -> Verdict:
        """The verdict for znodes from after a rollback: they must have all changes of the KRaft controller."""
        if name in LEADERSHIP:
            return INFO, ELECTED
        if name == NEXT_PRODUCER_ID:
            return INFO, "producer ids were given out after the rollback"
        if changed is not None:
            return (
                ERROR,
                f"{did} in KRaft at offset {changed}, and not in ZooKeeper: the rollback has undone it",
            )
        return ERROR, self._unexplained(did)

    def _why_broker(self, entity: Entity, zookeeper: Value) -> Verdict | None:
        registration = self.kraft.image.brokers.get(int(entity.name))
        if zookeeper is None and registration is not None:
            if self.status.is_export_older:
                return INFO, "registered after the export"
            if not registration.is_migrating_zk_broker:
                return INFO, "runs in KRaft mode, in which a broker has no znode"
            return INFO, f"was in ZooKeeper mode and is {'fenced' if registration.fenced else 'stopped'}"
        if self.status.phase in (Phase.ROLLED_BACK, Phase.FINALIZED) and not self.status.is_export_older:
            return INFO, "registered in ZooKeeper, later than KRaft knows of"
        return None

    @property
    def is_log_older(self) -> bool:
        """Whether ZooKeeper may have been written after the metadata log ends."""
        if self.status.phase is Phase.ROLLED_BACK:
            return True
        reached = self.znodes.reached
        return reached is not None and reached >= self.kraft.image.end_offset

    def _is_newer(self, entity: Entity) -> bool:
        """Whether its znode was written after the metadata log ends."""
        written = self.znodes.written_at(entity)
        return written is not None and written > (self.kraft.image.timestamp or 0)

    def _is_list_changed(self, entity_type: str) -> bool:
        if entity_type not in self._lists:
            since = self.kraft.image.timestamp or 0
            self._lists[entity_type] = self.znodes.is_list_changed(entity_type, since)
        return self._lists[entity_type]

    def _went_back(self, name: str | None, zookeeper: Value, kraft: Value) -> str | None:
        """A text about a value that decreased and never should; None otherwise."""
        if name not in ("leader_epoch", NEXT_PRODUCER_ID):
            return None
        values = (kraft, zookeeper) if self.is_log_older else (zookeeper, kraft)
        before, after = (value if isinstance(value, int) else 0 for value in values)
        if after >= before:
            return None
        if name == NEXT_PRODUCER_ID:
            return f"went back from {before} to {after}: producer ids would be given out twice"
        return f"went back from {before} to {after}: replicas may keep records that others do not have"

    def _unexplained(self, did: str) -> str:
        finding = {"removed": "is not in KRaft", "created": "is not in ZooKeeper", "changed": "differs"}[did]
        if self.kraft.has_whole_history:
            return f"{finding}, and no record since the copy explains it"
        start = self.kraft.image.start_offset
        return f"{finding}; the metadata log begins at {start}, after the copy, and does not tell why"


def _not_compared(entity: Entity, name: str | None, kraft: Value, why: str) -> Difference:
    is_secret = why != UNREADABLE
    zookeeper = REDACTED if is_secret else None
    return Difference(entity, name, zookeeper, kraft, INFO, f"not compared: {why}", is_open=not is_secret)


def _natural(name: str) -> tuple[str, int]:
    """`orders-2` before `orders-10`."""
    head, dash, number = name.rpartition("-")
    is_number = bool(dash) and number.isascii() and number.isdigit() and len(number) < 12
    return (head, int(number)) if is_number else (name, -1)
