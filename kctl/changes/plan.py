"""A change before it is made: what is asked, the writes it takes, what to say about it.

A `Plan` is a value. Its stages are carried out in order: the writes of a stage are one atomic transaction;
after it the stage's intent is waited for where another stage follows or `--wait` asks for it. The first stage
is written exactly as it was shown, with the versions read then; later ones are computed again when their
turn comes, because what went before has changed what they stand on.
"""

from collections.abc import Iterable, Mapping
from typing import Any, Protocol

from formats.values import Struct, field
from kctl.cluster.intent import Intent, Write
from kctl.cluster.state import ClusterState
from kctl.model import Json


class Stage(Struct, frozen=True, kw_only=True):
    """An intent and the writes that it takes, in one transaction.

    `undo` is what takes it back; None: the intent's own inverse.
    """

    intent: Intent
    writes: tuple[Write, ...] = ()
    undo: tuple[Intent, ...] | None = None


class Plan(Struct, frozen=True, kw_only=True):
    """A whole change. `details` is JSON that the command wants back on resume (a plan's identity, batches)."""

    title: str  # one clause: `create topic orders with 3 partitions, replication factor 2`
    stages: tuple[Stage, ...]
    warnings: tuple[str, ...] = ()  # said loudly before the question
    details: Mapping[str, Json] = field(default_factory=dict)
    # The option, not given, that accepts what nothing takes back: without it the plan is shown and refused.
    needs: str = ""

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to do."""
        return not self.stages


class Translator(Protocol):
    """The part of a cluster that turns an intent into its writes."""

    def writes_for(self, intent: Intent, state: ClusterState) -> tuple[Write, ...]:
        """See `kctl.cluster.interface.Cluster`."""


def plan_of(
    intents: Iterable[Intent],
    cluster: Translator,
    state: ClusterState,
    *,
    title: str = "",
    warnings: Iterable[str] = (),
    details: Mapping[str, Any] | None = None,
    needs: str = "",
) -> Plan:
    """The plan of these intents, a stage each, the first with its writes. Without a title it is the first intent."""
    stages = tuple(
        Stage(intent=intent, writes=() if number else cluster.writes_for(intent, state))
        for number, intent in enumerate(intents)
    )
    return Plan(
        title=title or str(stages[0].intent),
        stages=stages,
        warnings=tuple(warnings),
        details=details or {},
        needs=needs,
    )
