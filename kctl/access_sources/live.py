"""Rules and tokens of a cluster, whatever the backend."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kctl.access.tokens import DelegationToken
    from kctl.access.view import AccessView
    from kctl.cluster.interface import Cluster
    from kctl.cluster.state import Problem


def view_of(cluster: Cluster, *, rules_only: bool = False) -> AccessView:
    """What a cluster says about access. Raises KctlError."""
    if cluster.can.ask_brokers:
        from kctl.wire.acls import read_access
        from kctl.wire.cluster import AdminCluster

        assert isinstance(cluster, AdminCluster)
        return read_access(cluster, rules_only=rules_only)
    from kctl.zookeeper.access import read_access as read_znodes
    from kctl.zookeeper.cluster import RecordedCluster

    assert isinstance(cluster, RecordedCluster)
    return read_znodes(cluster.reader, rules_only=rules_only)


def tokens_of(cluster: Cluster, problems: list[Problem]) -> list[DelegationToken]:
    """The tokens of a cluster, as far as this user may see them. Raises KctlError."""
    if cluster.can.ask_brokers:
        from kctl.wire.cluster import AdminCluster
        from kctl.wire.writes.tokens import described_tokens

        assert isinstance(cluster, AdminCluster)
        return sorted(described_tokens(cluster.wire))
    from kctl.zookeeper.access import read_tokens
    from kctl.zookeeper.cluster import RecordedCluster

    assert isinstance(cluster, RecordedCluster)
    return sorted(read_tokens(cluster.reader, problems))
