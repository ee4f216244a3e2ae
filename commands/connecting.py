"""Which cluster a command works on: a live one, or with `--snapshot` one as it was recorded.

@command("list", examples="...")
@reads
def list_topics(frame: Frame, at: At) -> Outcome:
    with at.open(frame) as cluster: ...

with open_for_change(frame, how) as cluster: ...        # a changing command
"""

from __future__ import annotations

import functools
import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from commands.frame import Frame
from commands.path_types import GIVEN_PATH
from kctl.errors import BadValue, Refused

if TYPE_CHECKING:
    from kctl.cluster.interface import Cluster
    from kctl.cluster.versions import KafkaVersion
    from kctl.wire.adapter import Wire

ANSWER_TIMEOUT = 10.0  # seconds, where neither an option nor KCTL_ANSWER_TIMEOUT says how long


def answer_timeout() -> float:
    """How long a cluster may take for a connection and for each answer, in seconds."""
    from commands.changing import Duration

    given = os.environ.get("KCTL_ANSWER_TIMEOUT")
    return Duration().convert(given, None, None) if given else ANSWER_TIMEOUT


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

    def open(self, frame: Frame) -> Cluster:
        """The cluster. Raises KctlError where it cannot be reached or read."""
        if self.snapshot is not None:
            from kctl.zookeeper.cluster import RecordedCluster
            from kctl.zookeeper.snapshot import read_snapshot

            return RecordedCluster(read_snapshot(self.snapshot))
        return connect(frame, timeout=self.timeout, allow_stale=self.allow_stale)


def pinned(text: str | None) -> KafkaVersion | None:
    """The version that `--kafka-version` names."""
    if text is None:
        return None
    from kctl.cluster.versions import parse_version

    return parse_version(text)


def reads(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options of every command that reads a cluster; the function gets them as `At`, after the frame."""

    @functools.wraps(function)
    def wrapped(frame: Frame, /, **values: Any) -> Any:
        shared = {name: values.pop(name) for name in At.__annotations__ if name in values}
        return function(frame, At(**shared), **values)

    for option in reversed(_options()):
        wrapped = option(wrapped)
    return wrapped


def _options() -> list[Callable[[Callable[..., Any]], Callable[..., Any]]]:
    from commands.changing import Duration

    return [
        click.option(
            "--snapshot",
            type=GIVEN_PATH,
            metavar="FILE",
            envvar="KCTL_SNAPSHOT",
            help="Read this export (`kctl znode export`) in place of a live ZooKeeper.",
        ),
        click.option(
            "--allow-stale",
            is_flag=True,
            help="Also take a ZooKeeper server that is cut off from its quorum.",
        ),
        click.option(
            "--timeout",
            type=Duration(),
            default="10s",
            show_default=True,
            envvar="KCTL_ANSWER_TIMEOUT",
            help="How long to wait for an answer.",
        ),
        click.option(
            "--kafka-version",
            metavar="VERSION",
            envvar="KCTL_KAFKA_VERSION",
            help="The oldest broker's version, where ZooKeeper does not show it.",
        ),
    ]


def connect(frame: Frame, *, timeout: float | None = None, allow_stale: bool = False) -> Cluster:
    """The live cluster of the context in force: by ZooKeeper, else over Kafka's own protocol."""
    context = frame.context
    timeout = answer_timeout() if timeout is None else timeout
    if frame.given.get("bootstrap_server") and not frame.given.get("zookeeper"):
        return _by_protocol(frame, timeout)
    if context.zookeeper:
        from kctl.zookeeper.access import access_from
        from kctl.zookeeper.cluster import ZookeeperCluster
        from kctl.zookeeper.connection import Ensemble

        ensemble = Ensemble(access_from(context, timeout=timeout, read_only=allow_stale))
        if ensemble.is_read_only:
            frame.note(f"ZooKeeper {ensemble.location} is cut off from its quorum: what it says may be old")
        return ZookeeperCluster(ensemble)
    if context.bootstrap_server:
        return _by_protocol(frame, timeout)
    raise BadValue(
        "no cluster is named", "give --zookeeper HOSTS/chroot, --bootstrap-server HOSTS or --context NAME"
    )


def _by_protocol(frame: Frame, timeout: float) -> Cluster:
    from kctl.wire.cluster import AdminCluster

    return AdminCluster(wire(frame, timeout=timeout))


def wire(frame: Frame, *, timeout: float = ANSWER_TIMEOUT) -> Wire:
    """Connections to the brokers of the context in force. Raises KctlError where there are none."""
    from kctl.wire.adapter import Access, Wire

    context = frame.context
    if not context.bootstrap_server:
        raise BadValue("no brokers are named", "give --bootstrap-server HOSTS or --context NAME")
    access = Access(
        servers=context.bootstrap_server,
        timeout=timeout,
        tls=context.tls,
        tls_ca=context.tls_ca,
        tls_certificate=context.tls_certificate,
        tls_key=context.tls_key,
        tls_key_password=context.tls_key_password,
        sasl_mechanism=context.sasl_mechanism,
        sasl_username=context.sasl_username,
        sasl_password=context.sasl_password,
    )
    return Wire(access)


def open_for_change(frame: Frame, *, timeout: float | None = None) -> Cluster:
    """The live cluster, where it may be changed. Raises Refused for a read-only context or another cluster."""
    context = frame.context
    if context.read_only:
        raise Refused(
            f"context {context.name or ''!r} is read-only; nothing was written".replace("context ''", "it")
        )
    cluster = connect(frame, timeout=timeout)
    try:
        refuse_other_cluster(frame, cluster)
        _refuse_second_best(frame, cluster)
    except BaseException:
        cluster.close()
        raise
    return cluster


def _refuse_second_best(frame: Frame, cluster: Cluster) -> None:
    """Raise Refused for writes into ZooKeeper that brokers would do better, unless it was named on purpose."""
    from kctl.cluster.versions import V2_4

    if cluster.backend != "zookeeper" or frame.given.get("zookeeper"):
        return
    version = cluster.read_state((), partition_states=False, recent=True).kafka_version
    if version >= V2_4:
        raise Refused(
            f"brokers of Kafka {version} do this themselves, and check it; nothing was written into ZooKeeper",
            "give --bootstrap-server HOSTS, or --zookeeper on purpose",
        )


def refuse_other_cluster(frame: Frame, cluster: Cluster) -> None:
    """Raise Refused where the cluster has another id than the context expects, or is migrating to KRaft."""
    context = frame.context
    state = cluster.read_state((), partition_states=False, recent=True)
    if context.cluster_id and state.cluster_id != context.cluster_id:
        named = f"context `{context.name}`" if context.name else "KCTL_CLUSTER_ID"
        found = state.cluster_id or "not known"
        raise Refused(f"cluster id is {found}, {named} expects {context.cluster_id}; nothing was written")
    if state.is_migrating:
        raise Refused(
            "the cluster is under migration to KRaft, which overwrites what ZooKeeper holds; nothing was written"
        )
