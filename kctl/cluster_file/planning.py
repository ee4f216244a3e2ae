"""One plan that makes a cluster as files ask for it, of the intents of the commands that change one thing.

The order is safe at every point: who is to come in before what is opened to them; topics before what is about them; what
is taken away comes last. Steps of one kind are carried out together. Every step is checked before the first is written.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple, TypeVar

from formats.values import Struct, field, replace
from kctl.access.acl import Acl
from kctl.changes.intents import (
    AddPartitions,
    AlterAcls,
    AlterConfig,
    CreateTopic,
    DeleteTopic,
    Intent,
    Several,
    parts_of,
)
from kctl.changes.plan import Plan, Stage, plan_of
from kctl.cluster.configs import config_change, config_warnings, entity_path
from kctl.cluster.interface import Cluster
from kctl.cluster.names import refuse_collision
from kctl.cluster.state import ClusterState
from kctl.cluster.topics import (
    MOVED_KEYS,
    NewTopic,
    creation_of,
    creation_warnings,
    deletion_of,
    deletion_warnings,
    growth_of,
    parse_replica_assignment,
)
from kctl.cluster.unclean_allowed import guarded
from kctl.cluster.versions import KafkaVersion
from kctl.cluster_file.difference import CHANGE, CREATE, DELETE, NONE, Changed, changed_fields
from kctl.cluster_file.document import wrong
from kctl.cluster_file.resources import (
    PARTITIONS,
    PLACEMENT,
    REPLICAS,
    REPLICATION_FACTOR,
    SHAPE,
    Resource,
)
from kctl.errors import KctlError, Refused
from kctl.model import counted

IN_A_STAGE = 100  # intents
PARTITIONS_IN_A_STAGE = 1000
CONFIGURED = ("topic", "broker", "client_metrics", "group", "quota")
Step = TypeVar("Step", bound=Intent)


class Accepted(NamedTuple):
    """What the user gave the word for."""

    deletes: int | None = None
    loss: bool = False
    lockout: bool = False
    deletion_is_enabled: bool = False


class _Steps(Struct):
    """The intents by kind, in the order in which they are carried out."""

    creations: list[CreateTopic] = field(default_factory=list)
    growths: list[AddPartitions] = field(default_factory=list)
    configs: list[AlterConfig] = field(default_factory=list)
    quotas: list[AlterConfig] = field(default_factory=list)
    granting: list[AlterAcls] = field(default_factory=list)
    revoking: list[AlterAcls] = field(default_factory=list)
    deletions: list[DeleteTopic] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)

    def stages(self) -> Iterator[Intent]:
        """What each stage asks for."""
        yield from together(self.creations, lambda intent: len(intent.replicas))
        yield from together(self.growths, lambda intent: len(intent.replicas))
        yield from together(self.configs)
        yield from together(self.quotas)
        yield from (*self.granting, *self.revoking)
        yield from together(self.deletions)


def together(intents: Sequence[Step], size: Callable[[Step], int] = lambda intent: 1) -> Iterator[Intent]:
    """Intents of one kind in as few stages as requests allow."""
    batch: list[Step] = []
    used = 0
    for intent in intents:
        if batch and (len(batch) == IN_A_STAGE or used + size(intent) > PARTITIONS_IN_A_STAGE):
            yield _one(batch)
            batch, used = [], 0
        batch.append(intent)
        used += size(intent)
    if batch:
        yield _one(batch)


def _one(batch: Sequence[Intent]) -> Intent:
    return batch[0] if len(batch) == 1 else Several(parts=tuple(batch))


def plan_files(
    cluster: Cluster,
    state: ClusterState,
    changes: Sequence[Changed],
    accepted: Accepted,
    *,
    kafka_version: KafkaVersion | None = None,
    title: str,
    warnings: Iterable[str] = (),
    keeps_writes: bool = False,
) -> Plan:
    """The plan of all changes; empty where nothing differs.

    It needs a word where something is deleted, or where a partition may elect an unclean leader. Raises KctlError with
    the file and line that want what cannot be, before anything is written.
    """
    changes = [changed for changed in changes if changed.action != NONE]
    steps = _Steps(warnings=list(warnings))
    planner = _Planner(cluster, state, accepted, steps)
    for changed in changes:
        with_place(changed, planner.take)
    planner.take_rules(changes)
    intents = list(steps.stages())
    if not intents:
        return Plan(title=title, stages=())
    # The first is planned below; the others are checked, and computed again when their turn comes.
    writes = [cluster.writes_for(intent, state) for intent in intents[1:]]
    final = [intent for intent in intents if _is_final(intent)]
    steps.warnings += [f"nothing takes this back: {intent}" for intent in final]
    plan = plan_of(
        intents,
        cluster,
        state,
        title=f"{title}: {counted(len(changes), 'resource')} in {counted(len(intents), 'step')}",
        warnings=dict.fromkeys(steps.warnings),
        needs=_needs(changes, accepted),
    )
    if keeps_writes:
        later = [Stage(intent=intent, writes=of) for intent, of in zip(intents[1:], writes, strict=True)]
        plan = replace(plan, stages=(plan.stages[0], *later))
    return guarded(cluster, intents, plan, accepted=accepted.loss, kafka_version=kafka_version)


def _needs(changes: Iterable[Changed], accepted: Accepted) -> str:
    """The option that accepts the deletions, where it was not given with their number."""
    deletes = sum(changed.action == DELETE for changed in changes)
    return f"--accept-deletes {deletes}" if deletes and accepted.deletes != deletes else ""


def _is_final(intent: Intent) -> bool:
    try:
        intent.inverse()
    except Refused:
        return True
    return False


def with_place(changed: Changed, plan: Callable[[Changed], None]) -> None:
    """Plan a change; an error names the file and line that want it."""
    try:
        plan(changed)
    except KctlError as error:
        place = changed.resource.place or next((row.place for row in changed.drifts if row.place), None)
        if place is not None and not error.message.startswith(f"{place.file}:"):
            error.message = f"{place}: {error.message}"
        raise


class _Planner:
    """Turns each change into intents, against one state."""

    def __init__(self, cluster: Cluster, state: ClusterState, accepted: Accepted, steps: _Steps) -> None:
        self._cluster, self._state, self._accepted, self._steps = cluster, state, accepted, steps
        self._known: dict[str, frozenset[str] | None] = {}
        self._metric_names: dict[str, str] = {}  # of the topics to be created

    def take(self, changed: Changed) -> None:
        """Plan the change of a resource. Raises BadValue, Refused, KctlError."""
        resource = changed.resource
        if resource.kind == "topic" and changed.action != CHANGE:
            (self._create if changed.action == CREATE else self._delete)(resource)
        elif resource.kind in CONFIGURED:
            if resource.kind == "topic":
                self._reshape(changed)
            self._configure(changed)
        elif resource.kind == "user":
            raise Refused(
                f"user {resource.name} cannot be planned", "use `kctl user create` and `kctl user delete`"
            )

    def _create(self, resource: Resource) -> None:
        fields = resource.fields
        replicas = fields.get(REPLICAS)
        partitions, factor = fields.get(PARTITIONS), fields.get(REPLICATION_FACTOR)
        missing = [name for name in (PARTITIONS, REPLICATION_FACTOR) if fields.get(name) is None]
        if replicas is None and missing and resource.place:
            raise wrong(
                resource.place,
                f"topic {resource.name} is not there, and the file does not say its {' and '.join(missing)}",
                f"write `{missing[0]}: 3`, or give it by `defaults`",
            )
        new = NewTopic(
            name=resource.name,
            partitions=int(partitions) if partitions is not None else None,
            replication_factor=int(factor) if factor is not None else None,
            replicas=parse_replica_assignment(str(replicas)) if replicas is not None else None,
            configs=resource.configs,
        )
        other = self._metric_names.setdefault(resource.name.replace(".", "_"), resource.name)
        refuse_collision(resource.name, [other], self._state.kafka_version)
        intent = creation_of(new, self._state, checks_values=self._cluster.backend != "admin")
        self._steps.creations.append(intent)
        factor_now = len(next(iter(intent.replicas.values())))
        self._steps.warnings += creation_warnings(new, factor_now, self._state)

    def _delete(self, resource: Resource) -> None:
        is_enabled = self._accepted.deletion_is_enabled
        self._steps.deletions.append(deletion_of(self._state, resource.name, is_enabled=is_enabled))
        self._steps.warnings += deletion_warnings(self._state, resource.name)

    def _reshape(self, changed: Changed) -> None:
        resource = changed.resource
        for row in changed.drifts:
            if row.field == PARTITIONS and row.action == CHANGE:
                growth = growth_of(self._state, resource.name, int(row.desired or 0))
                if growth is not None:
                    self._steps.growths.append(growth)
                    self._steps.warnings.append(f"topic {resource.name}: {MOVED_KEYS}")
            elif row.field in (REPLICATION_FACTOR, REPLICAS, PLACEMENT) and row.action == CHANGE:
                raise Refused(
                    f"topic {resource.name} has {row.field} {row.present}, and {row.desired} is wanted; nothing was written",
                    f"`kctl reassign plan --topics {resource.name} --replication-factor N --to FILE` plans the moves",
                )

    def _configure(self, changed: Changed) -> None:
        resource = changed.resource
        kind, name = resource.of_config()
        if resource.kind != "quota":
            name = entity_path(kind, name, self._state.kafka_version)
        present = self._state.config(kind, name)
        after = {key: value for key, value in changed_fields(changed).items() if key not in SHAPE}
        if changed.action == DELETE:
            after = dict.fromkeys(changed.resource.fields)
        elif changed.action == CREATE:
            after = dict(resource.configs)
        values = {key: str(value) for key, value in after.items() if value is not None}
        unset = [key for key, value in after.items() if value is None and key in present]
        known = self._keys(kind, name) if values else ()
        intent = config_change(self._state, kind, name, set=values, unset=unset, known=known)
        if intent is None:
            return
        (self._steps.quotas if resource.kind == "quota" else self._steps.configs).append(intent)
        self._steps.warnings += [
            f"{resource.name}: {text}" for text in config_warnings(name, intent.after, self._state)
        ]

    def _keys(self, kind: str, name: str) -> frozenset[str] | None:
        """The keys that brokers list, of which each kind is asked for once."""
        if kind not in self._known:
            known = self._cluster.config_keys(kind, name)
            self._known[kind] = None if known is None else frozenset(known)
        return self._known[kind]

    def take_rules(self, changes: Iterable[Changed]) -> None:
        """Plan the rules: what allows more first."""
        added: list[Acl] = []
        removed: list[Acl] = []
        for changed in changes:
            if changed.resource.acl is not None:
                (added if changed.action == CREATE else removed).append(changed.resource.acl)
        granting = AlterAcls(
            added=tuple(acl for acl in added if acl.permission == "allow"),
            removed=tuple(acl for acl in removed if acl.permission == "deny"),
        )
        revoking = AlterAcls(
            added=tuple(acl for acl in added if acl.permission == "deny"),
            removed=tuple(acl for acl in removed if acl.permission == "allow"),
        )
        self._steps.granting += [granting] if granting.added or granting.removed else []
        self._steps.revoking += [revoking] if revoking.added or revoking.removed else []


def deleted_topics(plan: Plan) -> list[str]:
    """The topics that a plan deletes."""
    parts = (part for stage in plan.stages for part in parts_of(stage.intent))
    return [part.topic for part in parts if isinstance(part, DeleteTopic)]
