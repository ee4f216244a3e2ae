"""Rules and users of a cluster, whatever the backend."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kctl.access.view import AccessView
    from kctl.cluster.interface import Cluster
    from kctl.cluster.state import Problem

Users = Mapping[str, Mapping[str, int | None]]


def view_of(cluster: Cluster, *, rules_only: bool = False) -> AccessView:
    """What a cluster says about access. Raises KctlError."""
    if cluster.backend == "admin":
        from kctl.wire.acls import read_access
        from kctl.wire.cluster import AdminCluster

        assert isinstance(cluster, AdminCluster)
        return read_access(cluster, rules_only=rules_only)
    from kctl.zookeeper.access import read_access as read_znodes
    from kctl.zookeeper.cluster import RecordedCluster

    assert isinstance(cluster, RecordedCluster)
    return read_znodes(cluster.reader, rules_only=rules_only)


def users_of(cluster: Cluster, problems: list[Problem]) -> Users:
    """The iterations of each user by mechanism; None where the export holds no credentials. Raises KctlError."""
    if cluster.backend == "admin":
        from kctl.wire.cluster import AdminCluster
        from kctl.wire.users import read_users

        assert isinstance(cluster, AdminCluster)
        return read_users(cluster.wire)
    from kctl.zookeeper.access import iterations_of
    from kctl.zookeeper.access import read_users as read_znodes
    from kctl.zookeeper.cluster import RecordedCluster

    assert isinstance(cluster, RecordedCluster)
    return {
        user: {mechanism: iterations_of(value) or None for mechanism, value in credentials.items()}
        for user, credentials in read_znodes(cluster.reader, problems).items()
    }
