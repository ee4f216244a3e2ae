"""Configurations: keys that are set and unset, and the time for which they hold."""

import time
from collections.abc import Mapping
from typing import ClassVar, Self

from kctl.changes.kinds.codecs import TEXTS
from kctl.cluster.config_keys import KEPT_BY_EACH_BROKER
from kctl.cluster.intent import Intent, IntentCodec, Waited
from kctl.cluster.state import ClusterState
from kctl.errors import Refused
from kctl.times import iso


class AlterConfig(Intent, frozen=True, kw_only=True):
    """Set and unset keys of one entity. `before` has the values of exactly these keys (None: not set).

    Refused when a value is no longer the one in `before`. Inverse: `before` and what is set exchanged.
    """

    kind: ClassVar[str] = "alter-config"
    codecs: ClassVar[Mapping[str, IntentCodec]] = {"after": TEXTS, "before": TEXTS}
    entity_type: str
    entity_name: str
    after: Mapping[str, str | None]  # None: unset
    before: Mapping[str, str | None]

    @classmethod
    def of(
        cls, entity_type: str, entity_name: str, after: Mapping[str, str | None], present: Mapping[str, str]
    ) -> Self:
        """The change of an entity for which `present` is set now."""
        before = {key: present.get(key) for key in after}
        return cls(entity_type=entity_type, entity_name=entity_name, after=after, before=before)

    def __str__(self) -> str:
        name = f"{self.entity_type.removesuffix('s')} {self.entity_name}"
        verb = "unset" if all(value is None for value in self.after.values()) else "set"
        return f"{verb} {', '.join(sorted(self.after))} of {name}"

    def inverse(self) -> Intent:
        return AlterConfig(
            entity_type=self.entity_type, entity_name=self.entity_name, after=self.before, before=self.after
        )

    def topics_concerned(self) -> set[str] | None:
        return {self.entity_name} if self.entity_type == "topics" else set()

    def config_types(self) -> tuple[str, ...]:
        return (self.entity_type,)

    @property
    def is_forgotten(self) -> bool:
        """True for loggers: a broker that restarts begins with the levels of its file."""
        return self.entity_type == "broker-loggers"

    def leaves_no_trace(self, state: ClusterState) -> bool:
        return any(state.is_not_returned(value) for value in self.before.values())

    def how_far(self, state: ClusterState) -> Waited:
        """Whether the cluster has the values."""
        present = state.config(self.entity_type, self.entity_name)
        of = (self.entity_type, self.entity_name)
        if (why := state.why_unread(*of)) is not None:
            return Waited(
                0, 1, (f"the configuration of {of[0].removesuffix('s')} {of[1]} cannot be read ({why})",)
            )
        missing = [key for key, value in self.after.items() if not state.has_value(*of, key, value)]
        return Waited(int(not missing), 1, tuple(f"{key} is {present.get(key)!r}" for key in missing))

    def refuse_dead(self, state: ClusterState) -> None:
        is_broker = self.entity_type in KEPT_BY_EACH_BROKER and self.entity_name.isdecimal()
        if not state.can.keep_configs_of_dead and is_broker and not state.is_alive(int(self.entity_name)):
            raise Refused(
                f"broker {self.entity_name} is not alive, and only the broker itself can apply its configuration; "
                "nothing was written",
                f"start broker {self.entity_name}, and undo it then",
            )


class WaitUntil(Intent, frozen=True, kw_only=True):
    """Go on at a time, in milliseconds; nothing is written."""

    kind: ClassVar[str] = "wait-until"
    time: int

    def __str__(self) -> str:
        return f"wait until {iso(self.time)}"

    def seconds_to_come(self, now: float) -> float:
        return self.time / 1000 - now

    def how_far(self, state: ClusterState) -> Waited:
        """Whether the time for which a configuration was to hold is over."""
        remaining = self.time - time.time_ns() // 1_000_000
        return Waited(int(remaining <= 0), 1, (f"it is set back at {iso(self.time)}",))
