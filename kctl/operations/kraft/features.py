"""Features of a KRaft cluster: what is in force, what brokers support, and changing levels (KIP-584)."""

from collections.abc import Mapping

from formats.values import Struct
from kctl.changes.kinds.quorum import UpdateFeatures
from kctl.changes.plan import Plan, plan_of
from kctl.cluster.feature_levels import LEVELS, described_levels, one_way
from kctl.cluster.interface import Cluster, no_quorum
from kctl.cluster.state import ClusterState
from kctl.errors import BadValue, near_names


class Feature(Struct, frozen=True, kw_only=True):
    """A feature: the level in force (0: none), what all brokers support, and what its highest level would add."""

    name: str
    finalized_level: int
    minimum_level: int | None
    maximum_level: int | None

    @property
    def proposed_level(self) -> int | None:
        """The highest level that all brokers support, None if that is in force."""
        is_higher = self.maximum_level is not None and self.maximum_level > self.finalized_level
        return self.maximum_level if is_higher else None

    @property
    def is_reversible(self) -> bool | None:
        """Whether the proposal could be downgraded again."""
        proposed = self.proposed_level
        return None if proposed is None else not one_way(self.name, self.finalized_level, proposed)

    @property
    def adds(self) -> list[str]:
        """What the proposal adds, a sentence each."""
        return described_levels(self.name, self.finalized_level, self.proposed_level or 0)


def features_of(state: ClusterState, ranges: Mapping[str, tuple[int, int]]) -> list[Feature]:
    """Every feature that is in force or supported, by name."""
    return [
        Feature(
            name=name,
            finalized_level=state.features.get(name, 0),
            minimum_level=ranges[name][0] if name in ranges else None,
            maximum_level=ranges[name][1] if name in ranges else None,
        )
        for name in sorted({*ranges, *state.features})
    ]


def plan_levels(
    cluster: Cluster, state: ClusterState, levels: Mapping[str, int], *, is_downgrade: bool
) -> Plan:
    """The plan that sets levels, all of them or none; empty if they are in force. The controller validates it first.

    Raises BadValue for an unknown feature or a level in the wrong direction, Refused if the controller refuses.
    """
    if state.quorum is None:
        raise no_quorum(state)
    for name in levels.keys() - LEVELS.keys() - state.features.keys():
        supported, _ = cluster.supported_features()
        if name not in supported:
            raise BadValue(
                f"no feature {name}",
                near_names(
                    name, supported.keys() | LEVELS.keys(), otherwise="`kctl feature list` lists them"
                ),
            )
    before = {name: state.features.get(name, 0) for name in levels}
    after = {name: level for name, level in levels.items() if level != before[name]}
    verb, opposite = ("downgrade", "upgrade") if is_downgrade else ("upgrade", "downgrade")
    for name, level in after.items():
        if (level < before[name]) != is_downgrade:
            raise BadValue(f"{name} is {before[name]}: {level} is no {verb}", f"`kctl feature {opposite}`")
    title = f"{verb} {', '.join(f'{name} from {before[name]} to {level}' for name, level in after.items())}"
    if not after:
        return Plan(title=f"{verb} {', '.join(f'{n}={level}' for n, level in levels.items())}", stages=())
    finals = {name: one_way(name, before[name], level) for name, level in after.items()}
    intent = UpdateFeatures(
        levels=after,
        previous_levels={name: before[name] for name in after},
        is_downgrade=is_downgrade,
        is_reversible=not any(finals.values()),
    )
    warnings = [
        f"{name} cannot go back below {levels[-1].level}: {levels[-1].adds}"
        for name, levels in finals.items()
        if levels
    ]
    if is_downgrade:
        warnings += [
            f"{name} loses {description}"
            for name, level in after.items()
            for description in described_levels(name, level, before[name])
        ]
    adds = {name: described_levels(name, *sorted((before[name], level))) for name, level in after.items()}
    return plan_of([intent], cluster, state, title=title, warnings=warnings, details={"forecast": adds})
