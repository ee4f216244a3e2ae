"""Sizes of replicas where the cluster itself can tell them."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection

    from kctl.cluster.disk_sizes import ReplicaSize
    from kctl.cluster.interface import Cluster


def live_sizes(cluster: Cluster, topics: Collection[str] | None = None) -> list[ReplicaSize] | None:
    """The sizes as brokers tell them; None where only ZooKeeper is known, which has none."""
    return cluster.replica_sizes(topics)
