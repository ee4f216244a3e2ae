"""The phase of a migration, from the znodes, from a controller's metadata, or from both.

An export of the znodes may be older than the metadata, to prove that nothing was lost since, or newer, after a
rollback. Timestamps show which: znodes and records have them.

Source: KIP-866; metadata/src/main/java/org/apache/kafka/metadata/migration/KRaftMigrationDriver.java @ 3.9.0-rc3
"""

from enum import StrEnum

from formats.values import Struct
from kctl.cluster.names import brokers_named
from kctl.findings.migration import AFTER_ROLLBACK
from kctl.migration.kraft_side import KraftSide
from kctl.migration.zookeeper_side import ZookeeperSide


class Phase(StrEnum):
    """The phase of a migration."""

    NONE = "none"  # brokers in ZooKeeper mode, nothing begun
    PREPARING = "preparing"  # a KRaft controller waits for all brokers to register
    HYBRID = "hybrid"  # copied; brokers still run in ZooKeeper mode
    DUAL_WRITE = "dual_write"  # all brokers run in KRaft mode; the controller writes to both
    FINALIZED = "finalized"  # ZooKeeper is written no more
    ROLLED_BACK = "rolled_back"  # copied once; a broker is the controller again

    @property
    def is_before_copy(self) -> bool:
        """Whether nothing can be compared yet."""
        return self in (Phase.NONE, Phase.PREPARING)


class MigrationStatus(Struct, frozen=True, kw_only=True):
    """The phase, and the evidence for it."""

    phase: Phase
    message: str
    controller_epoch: int | None = None
    zookeeper_brokers: list[int] | None = None  # alive in ZooKeeper mode; None: unknown
    kraft_brokers: list[int] | None = None  # registered in KRaft mode; None: unknown
    is_export_older: bool = False  # the znodes are from before the copy


def status_of(znodes: ZookeeperSide | None, kraft: KraftSide | None) -> MigrationStatus:
    """The status, from one side or both."""
    is_older = znodes is not None and kraft is not None and is_export_older(znodes, kraft)
    phase = _phase(znodes, kraft, is_older=is_older)
    return MigrationStatus(
        phase=phase,
        message=_message(phase, znodes, kraft, is_older=is_older),
        controller_epoch=znodes.state.controller.epoch if znodes and znodes.state.controller else None,
        zookeeper_brokers=sorted(znodes.state.brokers) if znodes else None,
        kraft_brokers=in_kraft_mode(kraft) if kraft else None,
        is_export_older=is_older,
    )


def in_kraft_mode(kraft: KraftSide) -> list[int]:
    """The brokers that registered last in KRaft mode, fenced ones too."""
    return sorted(id for id, broker in kraft.image.brokers.items() if not broker.is_migrating_zk_broker)


def is_export_older(znodes: ZookeeperSide, kraft: KraftSide) -> bool:
    """Whether the znodes were exported before the metadata was copied from them.

    Leader epochs only rise: the side with higher ones is later. Otherwise timestamps decide, from two clocks.
    """
    if not kraft.is_copied or znodes.is_claimed:
        return False
    ours, theirs = (
        {
            entity: fields.get("leader_epoch")
            for entity, fields in side.entities.items()
            if entity.type == "partition"
        }
        for side in (znodes, kraft)
    )
    pairs = [(epoch, theirs.get(entity)) for entity, epoch in ours.items()]
    numbers = [(a, b) for a, b in pairs if isinstance(a, int) and isinstance(b, int)]
    is_lower, is_higher = any(a < b for a, b in numbers), any(a > b for a, b in numbers)
    if is_lower != is_higher:
        return is_lower
    return znodes.newest <= (kraft.history.copied_at or kraft.image.timestamp or 0)


def _phase(znodes: ZookeeperSide | None, kraft: KraftSide | None, *, is_older: bool) -> Phase:
    if kraft is None:
        return _of_znodes(znodes) if znodes else Phase.NONE
    if not kraft.is_copied:
        if znodes is not None and znodes.is_claimed and znodes.reached is not None:
            return _of_znodes(znodes)  # the log is older than the export, or another controller's
        return Phase.PREPARING if kraft.state == "PRE_MIGRATION" else Phase.NONE
    if znodes is not None and not znodes.is_claimed and not is_older:
        return Phase.ROLLED_BACK
    if kraft.state == "POST_MIGRATION":
        return Phase.FINALIZED
    if znodes is None or is_older:
        migrating = [b for b in kraft.image.brokers.values() if b.is_migrating_zk_broker and not b.fenced]
        return Phase.HYBRID if migrating else Phase.DUAL_WRITE
    return Phase.HYBRID if znodes.state.brokers else Phase.DUAL_WRITE


def _of_znodes(znodes: ZookeeperSide) -> Phase:
    """The phase from znodes alone, which do not distinguish dual write from later phases."""
    if znodes.migration is not None and znodes.reached is None:
        return Phase.PREPARING
    if znodes.is_claimed:
        return Phase.HYBRID if znodes.state.brokers else Phase.DUAL_WRITE
    if znodes.reached is not None or znodes.has_traces_of_kraft():
        return Phase.ROLLED_BACK
    return Phase.NONE


def _message(phase: Phase, znodes: ZookeeperSide | None, kraft: KraftSide | None, *, is_older: bool) -> str:
    in_zookeeper = sorted(znodes.state.brokers) if znodes else []
    message = {
        Phase.NONE: "no migration has begun",
        Phase.PREPARING: "nothing is copied yet: the KRaft controller waits for all brokers to register",
        Phase.HYBRID: "the metadata is copied; the KRaft controller writes it to ZooKeeper too",
        Phase.DUAL_WRITE: "no broker runs in ZooKeeper mode; the KRaft controller writes to ZooKeeper too",
        Phase.FINALIZED: "the migration is final; ZooKeeper is no longer written",
        Phase.ROLLED_BACK: "a broker is the controller again; what the KRaft controller has is out of date",
    }[phase]
    if phase is Phase.PREPARING and znodes and kraft:
        waiting = [id for id in in_zookeeper if id not in kraft.image.brokers]
        message += f"; {brokers_named(waiting)} not registered" if waiting else ""
    elif phase is Phase.HYBRID and znodes and not is_older:
        message += f"; {brokers_named(in_zookeeper)} still in ZooKeeper mode"
    elif phase is Phase.ROLLED_BACK and znodes and znodes.migration is not None:
        message += f"; znode /migration is still there: {AFTER_ROLLBACK}"
    elif phase is Phase.DUAL_WRITE and kraft is None:
        message = (
            "no broker runs in ZooKeeper mode; znodes alone do not tell whether the migration is final: "
            "name the controller's metadata with --metadata"
        )
    if is_older:
        message += "; the znodes were exported before the copy"
    return message
