"""Changes of rules: the plan with its forecast, refused where it would lock somebody out."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from kctl.access.acl import Acl
from kctl.changes.kinds.access import AlterAcls
from kctl.changes.plan import Plan, plan_of
from kctl.cluster.interface import Cluster

ACCEPT = "--accept-lockout"
MOST_ROWS = 500  # of the forecast that the journal keeps


def plan_acls(
    cluster: Cluster,
    present: Iterable[Acl],
    added: Sequence[Acl],
    removed: Sequence[Acl],
    *,
    title: str,
    lockouts: Sequence[str],
    forecast: Sequence[Mapping[str, Any]],
    accepted: bool,
) -> Plan:
    """The plan of creating rules that are not there and deleting rules that are; empty where nothing is to do."""
    known = set(present)
    intent = AlterAcls(
        added=tuple(acl for acl in added if acl not in known),
        removed=tuple(acl for acl in removed if acl in known),
    )
    if not intent.added and not intent.removed:
        return Plan(title=title, stages=())
    state = cluster.read_state((), partition_states=False, recent=True)
    return plan_of(
        [intent],
        cluster,
        state,
        title=str(intent),
        warnings=lockouts,
        details={"forecast": [dict(row) for row in forecast[:MOST_ROWS]]},
        needs="" if accepted or not lockouts else ACCEPT,
    )
