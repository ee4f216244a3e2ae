"""The cluster that a command works on: a live one, or with `--snapshot` a recorded one.

@command("list")
@reads
def list_topics(frame: Frame, at: At) -> Outcome:
    with at.open(frame) as cluster: ...

with open_for_change(frame) as cluster: ...        # a changing command
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from commands.cli.frame import Frame
from commands.cli.options import KAFKA_VERSION, SNAPSHOT, Duration, as_one_value, flag, option
from kctl.errors import BadValue, Refused

if TYPE_CHECKING:
    from kctl.cluster.interface import Cluster
    from kctl.cluster.versions import KafkaVersion
    from kctl.wire.adapter import Wire
    from kctl.wire.cluster import AdminCluster

AnyCluster = TypeVar("AnyCluster", bound="Cluster")
ANSWER_TIMEOUT = 10.0  # seconds, where neither an option nor KCTL_ANSWER_TIMEOUT says how long


def answer_timeout(frame: Frame, timeout: float | None = None) -> float:
    """How long a cluster may take for a connection and for each answer, in seconds.

    `timeout` is that of an option; where the option was left out, the context's stands above its default.
    """
    from click import get_current_context
    from click.core import ParameterSource

    command = get_current_context(silent=True)
    source = command.get_parameter_source("timeout") if command else None
    if timeout is not None and source not in (None, ParameterSource.DEFAULT):
        return timeout
    if value := frame.context.answer_timeout:  # or KCTL_ANSWER_TIMEOUT
        return Duration().convert(value, None, None)
    return ANSWER_TIMEOUT if timeout is None else timeout


class At(NamedTuple):
    """Where a reading command looks, from its options."""

    snapshot: Path | None
    allow_stale: bool
    timeout: float
    kafka_version: str | None

    @property
    def version(self) -> KafkaVersion | None:
        """The pinned version."""
        return pinned(self.kafka_version)

    def open(self, frame: Frame, *, needs_controller: bool = False) -> Cluster:
        """The cluster. Raises KctlError where it cannot be reached or read.

        Without an active controller its reads warn and give what brokers know, or raise where one is needed.
        """
        if self.snapshot is not None:
            from kctl.zookeeper.cluster import RecordedCluster
            from kctl.zookeeper.snapshot import read_snapshot

            return RecordedCluster(read_snapshot(self.snapshot))
        return connect(
            frame, timeout=self.timeout, allow_stale=self.allow_stale, needs_controller=needs_controller
        )


def pinned(text: str | None) -> KafkaVersion | None:
    """The version that `--kafka-version` names."""
    if text is None:
        return None
    from kctl.cluster.versions import parse_version

    return parse_version(text)


# The options of every command that reads a cluster; the function gets them as `At`, after the frame.
reads = as_one_value(
    At,
    [
        SNAPSHOT,
        flag("--allow-stale", "Accept a ZooKeeper server that is cut off from its quorum."),
        option(
            "--timeout",
            "Maximum wait for each answer.",
            type=Duration(),
            default="10s",
            envvar="KCTL_ANSWER_TIMEOUT",
        ),
        KAFKA_VERSION,
    ],
)


def connect(
    frame: Frame,
    *,
    timeout: float | None = None,
    allow_stale: bool = False,
    needs_controller: bool = True,
) -> Cluster:
    """The live cluster of the context in force: by ZooKeeper, else over Kafka's own protocol."""
    context = frame.context
    timeout = answer_timeout(frame, timeout)
    if frame.names_brokers and not frame.given.get("zookeeper"):
        return _by_protocol(frame, timeout, needs_controller)
    if context.zookeeper:
        from kctl.zookeeper.cluster import ZookeeperCluster
        from kctl.zookeeper.connection import Ensemble, access_from

        ensemble = Ensemble(access_from(context, timeout=timeout, read_only=allow_stale))
        if ensemble.is_read_only:
            frame.note(f"ZooKeeper {ensemble.location} is cut off from its quorum: its data may be stale")
        return ZookeeperCluster(ensemble)
    if context.bootstrap_server:
        return _by_protocol(frame, timeout, needs_controller)
    raise BadValue(
        "no cluster given", "give --zookeeper HOSTS/chroot, --bootstrap-server HOSTS or --context NAME"
    )


def _by_protocol(frame: Frame, timeout: float, needs_controller: bool) -> Cluster:
    from kctl.wire.cluster import AdminCluster

    return AdminCluster(wire(frame, timeout=timeout), needs_controller=needs_controller)


def wire(frame: Frame, *, timeout: float | None = None) -> Wire:
    """Connections to the brokers of the context in force. Raises KctlError where there are none."""
    from kctl.wire.adapter import Wire, access_from

    servers = frame.context.bootstrap_server
    if not servers:
        raise BadValue("no brokers are named", "give --bootstrap-server HOSTS or --context NAME")
    return Wire(access_from(frame.context, servers, answer_timeout(frame, timeout)), frame.note)


def open_for_change(frame: Frame, *, timeout: float | None = None) -> Cluster:
    """The live cluster, where it may be changed. Raises Refused for a read-only context or another cluster."""
    from kctl.changes.allowed import refuse_read_only

    refuse_read_only(frame.context)
    return _changeable(frame, connect(frame, timeout=timeout))


def open_brokers_for_change(frame: Frame) -> AdminCluster:
    """As `open_for_change`, for what brokers alone can do: always over Kafka's own protocol."""
    from kctl.changes.allowed import refuse_read_only
    from kctl.wire.cluster import AdminCluster

    refuse_read_only(frame.context)
    return _changeable(frame, AdminCluster(wire(frame)))


def _changeable(frame: Frame, cluster: AnyCluster) -> AnyCluster:
    try:
        refuse_other_cluster(frame, cluster)
        _refuse_direct_writes(frame, cluster)
    except BaseException:
        cluster.close()
        raise
    return cluster


def _refuse_direct_writes(frame: Frame, cluster: Cluster) -> None:
    """Raise Refused for writes into ZooKeeper that brokers should make, unless --zookeeper was given."""
    from kctl.cluster.versions import V2_4

    if not cluster.can.write_past_brokers or frame.given.get("zookeeper"):
        return
    version = cluster.read_state((), partition_states=False, recent=True).kafka_version
    if version >= V2_4:
        raise Refused(
            f"brokers of Kafka {version} must make and check this change themselves; nothing was written to ZooKeeper",
            "give --bootstrap-server HOSTS, or --zookeeper to write to ZooKeeper anyway",
        )


def refuse_other_cluster(frame: Frame, cluster: Cluster) -> None:
    """Raise Refused where the cluster is not the one that the context expects."""
    from kctl.changes.allowed import refuse_other_cluster

    refuse_other_cluster(frame.context, cluster.read_state((), partition_states=False, recent=True))
