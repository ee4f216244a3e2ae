"""A running cluster: plans of reassignments, what they would write, and carrying them out."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from types import TracebackType
from typing import TYPE_CHECKING

from formats.words import counted
from kctl.api.values import Value, Values
from kctl.errors import BadValue, Refused

if TYPE_CHECKING:
    from kctl.changes.plan import Plan as ChangePlan
    from kctl.cluster.interface import Cluster as Backend
    from kctl.operations.reassignment.planner import Planned
    from kctl.settings import Context

ANSWER_SECONDS = 10.0


class Cluster:
    """A cluster that answers, by ZooKeeper or Kafka's own protocol; close it, or use it in a `with` block."""

    def __init__(self, backend: Backend, context: Context) -> None:
        self._backend, self._context = backend, context

    @property
    def cluster_id(self) -> str | None:
        """The id that its brokers have, as far as it is known."""
        return self._backend.read_state((), partition_states=False).cluster_id

    def plan_reassignment(
        self,
        *,
        topics: Iterable[str] | None = None,
        brokers: Iterable[int] = (),
        add: Iterable[int] = (),
        drain: Iterable[int] = (),
        replace: Mapping[int, int] | None = None,
        replication_factor: int | None = None,
        rack_aware: bool = True,
    ) -> Plan:
        """The fewest moves that reach the goal, as `kctl reassign plan` makes them; nothing is changed.

        Raises KctlError for unknown topics and brokers, and for a goal that cannot be reached.
        """
        from kctl.operations.reassignment.planner import ReassignmentGoal, plan
        from kctl.operations.reassignment.replica_sizes import partition_sizes

        named = frozenset(topics) if topics is not None else None
        goal = ReassignmentGoal(
            brokers=frozenset(brokers), add=frozenset(add), drain=frozenset(drain), replace=dict(replace or {}),
            replication_factor=replication_factor, topics=named, rack_aware=rack_aware,
        )  # fmt: skip
        if not (goal.brokers or goal.add or goal.drain or goal.replace or replication_factor):
            raise BadValue("nothing to plan", "give brokers, add, drain, replace or replication_factor")
        state = self._backend.read_state()
        known = self._backend.replica_sizes(goal.topics)
        return Plan(self, plan(state, goal, partition_sizes(known) if known is not None else None))

    def close(self) -> None:
        """End the connections."""
        self._backend.close()

    def __enter__(self) -> Cluster:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<cluster at {self._backend.location}>"


class Plan:
    """A reassignment that was planned. `notes` say what was left out and why."""

    def __init__(self, cluster: Cluster, planned: Planned) -> None:
        self._cluster, self._planned = cluster, planned
        self.notes = planned.notes

    @property
    def targets(self) -> dict[tuple[str, int], tuple[int, ...]]:
        """The replicas that partitions shall have, by (topic, partition)."""
        return {(tp.topic, tp.partition): tuple(replicas) for tp, replicas in self._planned.targets.items()}

    def diff(self, *, throttle: int | None = None) -> Values:
        """Rows `write`: what carrying it out would write, with the current values. `throttle` is bytes a second."""
        from kctl.changes.entry import write_rows

        return Values(write_rows(self._change(throttle)))

    def execute(self, *, reason: str, throttle: int | None = None, timeout: float = 3600) -> Value:
        """Carry it out and wait up to `timeout` seconds; gives the row `change` of its entry in the journal.

        Nobody is asked: look at `diff` first. Raises Refused where nothing was written, NotFinished where the
        brokers go on; `kctl journal undo` and `resume` work from the entry.
        """
        from kctl.changes.allowed import refuse_other_cluster, refuse_read_only
        from kctl.changes.apply import ChangeRun, apply
        from kctl.changes.entry import change_row, new_entry
        from kctl.changes.journal import Journal
        from kctl.cluster.versions import V2_4

        backend, context = self._cluster._backend, self._cluster._context
        refuse_read_only(context)
        state = backend.read_state((), partition_states=False, recent=True)
        refuse_other_cluster(context, state)
        if backend.can.write_past_brokers and state.kafka_version >= V2_4 and not context.zookeeper:
            raise Refused(
                "only brokers can make this change; nothing was written", "connect with bootstrap_server"
            )
        change = self._change(throttle)
        if change.is_empty:
            raise Refused(
                f"nothing to do: {change.title}", "all replicas are already where the plan puts them"
            )
        if change.needs:
            raise Refused(f"{change.title} needs {change.needs}; nothing was written", "use the command line")
        entry = new_entry(
            change, command="kctl.Plan.execute", reason=reason, cluster_id=state.cluster_id,
            backend=backend.backend, location=backend.location, kafka_version=None,
        )  # fmt: skip
        apply(
            entry, ChangeRun(cluster=backend, journal=Journal(), wait=True, until=time.monotonic() + timeout)
        )
        return Value(change_row(entry))

    def _change(self, throttle: int | None) -> ChangePlan:
        from kctl.changes.kinds.throttles import KEYS
        from kctl.cluster.moves import DEFAULT_BATCH_BYTES
        from kctl.operations.reassignment.execution import Execution, plan_execution

        planned, backend = self._planned, self._cluster._backend
        state = backend.read_state(
            sorted({tp.topic for tp in planned.targets}), configs=("topics", "brokers"), config_keys=KEYS
        )
        execution = Execution(
            targets=planned.targets, file="a plan", plan_id=planned.identity, batches=planned.batches(most_bytes=DEFAULT_BATCH_BYTES, most_data=None, most_moves=None),
            throttle=throttle,
        )  # fmt: skip
        return plan_execution(backend, execution, state)

    def __repr__(self) -> str:
        return f"<plan of {counted(len(self._planned.targets), 'partition')}>"

    def _repr_html_(self) -> str:
        return self.diff()._repr_html_()


def connect(
    *,
    bootstrap_server: str | None = None,
    zookeeper: str | None = None,
    context: str | None = None,
    timeout: float = ANSWER_SECONDS,
    **settings: str | bool,
) -> Cluster:
    """A running cluster, by its brokers or its ZooKeeper, or as a context of the settings file names it.

    `settings` are the keys of a context (`tls_ca`, `sasl_mechanism`, ...), `timeout` is seconds for each answer. Raises
    KctlError where nothing answers.
    """
    from kctl.settings import KEYS, read_context

    if unknown := sorted(settings.keys() - KEYS.keys()):
        raise BadValue(f"no setting {unknown[0]}", f"the settings are {', '.join(sorted(KEYS))}")
    values = {**settings, "bootstrap_server": bootstrap_server, "zookeeper": zookeeper, "context": context}
    chosen = read_context({k: v for k, v in values.items() if v is not None}, warn=lambda text: None)
    if chosen.zookeeper and not bootstrap_server:
        from kctl.zookeeper.cluster import ZookeeperCluster
        from kctl.zookeeper.connection import Ensemble
        from kctl.zookeeper.connection import access_from as zookeeper_access

        return Cluster(ZookeeperCluster(Ensemble(zookeeper_access(chosen, timeout=timeout))), chosen)
    if not chosen.bootstrap_server:
        raise BadValue("no cluster given", "give bootstrap_server, zookeeper or context")
    from kctl.wire.adapter import Wire, access_from
    from kctl.wire.cluster import AdminCluster

    wire = Wire(access_from(chosen, chosen.bootstrap_server, timeout), lambda text: None)
    return Cluster(AdminCluster(wire, needs_controller=True), chosen)
