"""Whether a cluster may be changed: by its context, and by its state."""

from kctl.cluster.state import ClusterState
from kctl.errors import Refused
from kctl.settings import Context


def refuse_read_only(context: Context) -> None:
    """Raise Refused if the context is read-only."""
    if context.read_only:
        name = f"context {context.name!r}" if context.name else "it"
        raise Refused(
            f"{name} is read-only; nothing was written",
            "name a context that may write, or remove read_only from this one",
        )


def refuse_other_cluster(context: Context, state: ClusterState) -> None:
    """Raise Refused if the cluster has another id than the context expects, or is migrating to KRaft."""
    if context.cluster_id and state.cluster_id != context.cluster_id:
        setting = f"context `{context.name}`" if context.name else "KCTL_CLUSTER_ID"
        actual = state.cluster_id or "not known"
        raise Refused(
            f"cluster id is {actual}, {setting} expects {context.cluster_id}; nothing was written",
            "check that this is the cluster you mean",
        )
    if state.is_migrating:
        raise Refused(
            "the cluster is migrating to KRaft, which overwrites ZooKeeper's data; nothing was written",
            "wait until the migration is over; `kctl migration status` shows its progress",
        )
