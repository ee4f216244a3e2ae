"""One plan that makes a cluster as files ask for it, of the intents of the commands that change one thing.

The order is safe at every point: who is to come in before what is opened to them; topics before what is about them; what
is taken away comes last. Steps of one kind are carried out together. Every step is checked before the first is written.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from random import Random
from typing import NamedTuple, TypeVar

from formats.values import Struct, field
from formats.words import counted
from kctl.access.acl import Acl
from kctl.access.users import FEWEST_ITERATIONS
from kctl.changes.intents import Several
from kctl.changes.kinds.access import AlterAcls, DeleteScram, SetScram
from kctl.changes.kinds.configs import AlterConfig
from kctl.changes.kinds.topics import AddPartitions, CreateTopic, DeleteTopic
from kctl.changes.plan import Plan, Stage
from kctl.changes.unclean_allowed import guarded
from kctl.cluster.config_keys import BROKERS_ONLY
from kctl.cluster.intent import Intent
from kctl.cluster.interface import Cluster
from kctl.cluster.names import brokers_named, refuse_collision
from kctl.cluster.placement import draw, place_replicas
from kctl.cluster.state import ClusterState, Replicas
from kctl.cluster.versions import KafkaVersion
from kctl.cluster_file.difference import CHANGE, CREATE, DELETE, NONE, Changed, changed_fields
from kctl.cluster_file.document import wrong
from kctl.cluster_file.moving import BROKERS, brokers_in, moves_for
from kctl.cluster_file.resources import (
    PARTITIONS,
    PLACEMENT,
    REPLICAS,
    REPLICATION_FACTOR,
    SHAPE,
    Resource,
    Value,
)
from kctl.errors import KctlError, Refused
from kctl.model import command_line
from kctl.operations.acls import ACCEPT
from kctl.operations.configs import config_change, config_warnings, entity_path
from kctl.operations.topics import (
    MOVED_KEYS,
    NewTopic,
    creation_of,
    creation_warnings,
    deletion_of,
    deletion_warnings,
    growth_of,
    parse_replica_assignment,
)

IN_A_STAGE = 100  # intents
PARTITIONS_IN_A_STAGE = 1000
MOVED = (REPLICATION_FACTOR, REPLICAS, PLACEMENT)
WITH_CONFIG = ("topic", "broker", "client_metrics", "group", "quota")
Step = TypeVar("Step", bound=Intent)


class Accepted(NamedTuple):
    """What the user gave the word for."""

    deletes: int | None = None
    loss: bool = False
    lockouts: tuple[str, ...] = ()  # of rules, which nobody gave the word for
    deletion_is_enabled: bool = False
    passwords: bool = False  # whether there are any for new users
    most_bytes: int = 0  # that moves may copy


class _Steps(Struct):
    """The intents by kind, in the order in which they are carried out."""

    users: list[SetScram] = field(default_factory=list)
    creations: list[CreateTopic] = field(default_factory=list)
    growths: list[AddPartitions] = field(default_factory=list)
    moves: list[Intent] = field(default_factory=list)
    configs: list[AlterConfig] = field(default_factory=list)
    quotas: list[AlterConfig] = field(default_factory=list)
    granting: list[AlterAcls] = field(default_factory=list)
    revoking: list[AlterAcls] = field(default_factory=list)
    leaving: list[DeleteScram] = field(default_factory=list)
    deletions: list[DeleteTopic] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)

    def stages(self) -> Iterator[Intent]:
        """What each stage asks for."""
        yield from self.users
        yield from together(self.creations, lambda intent: len(intent.replicas))
        yield from together(self.growths, lambda intent: len(intent.replicas))
        yield from self.moves
        yield from together(self.configs)
        yield from together(self.quotas)
        yield from (*self.granting, *self.revoking, *self.leaving)
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
    moves = moves_for(cluster, planner.moved, accepted.most_bytes, kafka_version)
    steps.moves += moves.intents
    steps.warnings += moves.warnings
    intents = list(steps.stages())
    if not intents:
        return Plan(title=title, stages=())
    # All are checked; those of later stages are computed again when their turn comes, and passwords are in none.
    writes = [() if isinstance(intent, SetScram) else cluster.writes_for(intent, state) for intent in intents]
    final = [intent for intent in intents if _is_final(intent)]
    steps.warnings += [f"nothing takes this back: {intent}" for intent in final]
    stages = [
        Stage(intent=intent, writes=of if number == 0 or keeps_writes else ())
        for number, (intent, of) in enumerate(zip(intents, writes, strict=True))
    ]
    plan = Plan(
        title=f"{title}: {counted(len(changes), 'resource')} in {counted(len(intents), 'step')}"
        + (f", {counted(deletes, 'deletion')}" if (deletes := deletions(changes)) else ""),
        stages=tuple(stages),
        warnings=tuple(dict.fromkeys((*steps.warnings, *accepted.lockouts))),
        needs=_needs(changes, accepted),
    )
    return guarded(cluster, intents, plan, accepted=accepted.loss, kafka_version=kafka_version)


def _needs(changes: Iterable[Changed], accepted: Accepted) -> str:
    """The option that accepts the deletions, where it was not given with their number."""
    deletes = deletions(changes)
    missing = [f"--accept-deletes {deletes}"] if deletes and accepted.deletes != deletes else []
    return " and ".join([*missing, *([ACCEPT] if accepted.lockouts else [])])


def deletions(changes: Iterable[Changed]) -> int:
    """How much goes because no file mentions it: resources, and of others keys, quotas and mechanisms."""
    return sum(row.action == DELETE for changed in changes for row in changed.drifts)


def loses_mechanism(changed: Changed) -> bool:
    """Whether a user loses a credential, which nothing gives back."""
    if changed.resource.kind != "user" or changed.action not in (CHANGE, DELETE):
        return False
    return changed.action == DELETE or any(value is None for value in changed_fields(changed).values())


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


def _iterations(fields: Mapping[str, Value]) -> dict[str, int]:
    """The iterations by mechanism; the least that brokers take where none are said."""
    return {name: int(value) if value else FEWEST_ITERATIONS for name, value in sorted(fields.items())}


def _both_at_once(topic: str) -> Refused:
    return Refused(
        f"topic {topic} would get more partitions and other replicas at once; nothing was written",
        "apply one of the two first, then the other",
    )


class _Planner:
    """Turns each change into intents, against one state."""

    def __init__(self, cluster: Cluster, state: ClusterState, accepted: Accepted, steps: _Steps) -> None:
        self._cluster, self._state, self._accepted, self._steps = cluster, state, accepted, steps
        self._known: dict[str, frozenset[str] | None] = {}
        self.moved: list[tuple[Resource, frozenset[str]]] = []
        """The topics whose replicas are to be elsewhere, with the fields that say so."""
        self._metric_names: dict[str, str] = {}  # of the topics to be created

    def take(self, changed: Changed) -> None:
        """Plan the change of a resource. Raises BadValue, Refused, KctlError."""
        resource = changed.resource
        if resource.kind == "topic" and changed.action != CHANGE:
            (self._create if changed.action == CREATE else self._delete)(resource)
        elif resource.kind in WITH_CONFIG:
            if resource.kind == "topic":
                self._reshape(changed)
            self._configure(changed)
        elif resource.kind == "user":
            self._user(changed)
        else:
            assert resource.kind == "acl", resource.kind  # `take_rules` plans them

    def _user(self, changed: Changed) -> None:
        """New mechanisms get the user's new password; those that are there keep theirs."""
        name, present = changed.resource.name, dict(changed.present.fields if changed.present else {})
        if changed.action == DELETE:
            self._steps.leaving.append(DeleteScram(user=name, mechanisms=_iterations(present)))
            return
        fields = changed.resource.fields if changed.action == CREATE else changed_fields(changed)
        added = {key: value for key, value in fields.items() if value is not None and key not in present}
        gone = {key: present[key] for key, value in fields.items() if value is None and key in present}
        if other := [key for key in fields if key in present and key not in gone]:
            raise Refused(
                f"{other[0]} of user {name} has {present[other[0]]} iterations, and {fields[other[0]]} are wanted; "
                "nothing was written",
                f"`{command_line('kctl user set-password', [name], ['--iterations', str(fields[other[0]])])}` sets them, with a password",
            )
        if added and not self._accepted.passwords:
            raise Refused(
                f"user {name} has no {' and '.join(sorted(added))}, and files hold no passwords; nothing was written",
                f"give --generate-passwords-to or --password-command, or use `{command_line('kctl user create', [name])}`",
            )
        if added:
            self._steps.users.append(
                SetScram(user=name, mechanisms=_iterations(added), previous_mechanisms={})
            )
        if gone:
            self._steps.leaving.append(DeleteScram(user=name, mechanisms=_iterations(gone)))

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
            replicas=self._replicas(resource),
            configs=resource.configs,
        )
        other = self._metric_names.setdefault(resource.name.replace(".", "_"), resource.name)
        refuse_collision(resource.name, [other], self._state.kafka_version)
        intent = creation_of(new, self._state, checks_values=not self._cluster.can.have_values_checked)
        self._steps.creations.append(intent)
        factor_now = len(next(iter(intent.replicas.values())))
        self._steps.warnings += creation_warnings(new, factor_now, self._state)

    def _replicas(self, resource: Resource) -> Mapping[int, Replicas] | None:
        """The replicas of a new topic, where the file says which brokers take them; None: as Kafka places them."""
        fields = resource.fields
        if (replicas := fields.get(REPLICAS)) is not None:
            return parse_replica_assignment(str(replicas))
        placement = str(fields.get(PLACEMENT))
        if not placement.startswith(BROKERS):
            return None
        racks = self._racks_of(brokers_in(placement))
        partitions, factor = int(fields[PARTITIONS] or 0), int(fields[REPLICATION_FACTOR] or 0)
        return place_replicas(racks, partitions, factor, draw(len(racks), Random()))

    def _delete(self, resource: Resource) -> None:
        is_enabled = self._accepted.deletion_is_enabled
        self._steps.deletions.append(deletion_of(self._state, resource.name, is_enabled=is_enabled))
        self._steps.warnings += deletion_warnings(self._state, resource.name)

    def _reshape(self, changed: Changed) -> None:
        resource = changed.resource
        for row in changed.drifts:
            if row.field == PARTITIONS and row.action == CHANGE:
                growth = growth_of(
                    self._state, resource.name, int(row.desired or 0), replicas=self._added_replicas(resource)
                )
                if growth is not None:
                    self._steps.growths.append(growth)
                    self._steps.warnings.append(f"topic {resource.name}: {MOVED_KEYS}")
        if (listed := resource.fields.get(REPLICAS)) is not None:
            return self._rearrange(resource, parse_replica_assignment(str(listed)))
        moved = frozenset(row.field for row in changed.drifts if row.field in MOVED and row.action == CHANGE)
        grows = any(row.field == PARTITIONS and row.action == CHANGE for row in changed.drifts)
        if moved and grows:
            raise _both_at_once(resource.name)
        if moved:
            self.moved.append((resource, frozenset(filter(None, moved))))

    def _added_replicas(self, resource: Resource) -> list[Replicas] | None:
        """The replicas of partitions that are added, where the file says which brokers take them; None: as Kafka places them."""
        placement = str(resource.fields.get(PLACEMENT))
        topic = self._state.topics[resource.name]
        added = int(resource.fields.get(PARTITIONS) or 0) - len(topic.partitions)
        if not placement.startswith(BROKERS) or added <= 0:
            return None
        racks = self._racks_of(brokers_in(placement))
        factor = min(map(len, topic.partitions.values()), default=1)
        return list(place_replicas(racks, added, factor, draw(len(racks), Random())).values())

    def _racks_of(self, ids: Sequence[int]) -> dict[int, str | None]:
        """The racks of brokers that are to get replicas. Raises Refused for those that are not alive."""
        if dead := [id for id in ids if not self._state.is_alive(id)]:
            raise Refused(
                f"{brokers_named(dead)} not alive; nothing was written", "start them, or name others"
            )
        return {id: self._state.brokers[id].rack for id in ids}

    def _rearrange(self, resource: Resource, listed: Mapping[int, Replicas]) -> None:
        """Put the replicas of each partition where the file lists them; what is listed beyond the present ones is new."""
        topic = self._state.topics[resource.name]
        new = [
            replicas for partition, replicas in sorted(listed.items()) if partition not in topic.partitions
        ]
        is_moved = any(listed.get(p) != topic.target_replicas(p) for p in topic.partitions)
        if new and is_moved:
            raise _both_at_once(resource.name)
        growth = growth_of(self._state, resource.name, len(listed), replicas=new)
        if growth is not None:
            self._steps.growths.append(growth)
            self._steps.warnings.append(f"topic {resource.name}: {MOVED_KEYS}")
        if is_moved:
            self.moved.append((resource, frozenset((REPLICAS,))))

    def _configure(self, changed: Changed) -> None:
        resource = changed.resource
        kind, name = resource.of_config()
        if kind in BROKERS_ONLY and not self._cluster.can.ask_brokers:
            raise Refused(f"only brokers keep {kind}; nothing was written", "give --bootstrap-server")
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
        """The keys that brokers list, asked for once a kind: all entities of a kind have the same."""
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
