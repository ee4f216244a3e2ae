"""What a change asks of a cluster, and what a backend writes for it: the base of all kinds of changes.

A kind is a class in `kctl/changes/kinds/`: plain values, JSON both ways, and methods that say what it concerns, whether
it is done, what remains and what takes it back. What carries changes out (`kctl.changes.apply`, `waiting`, `undo`)
calls these methods and knows no kind.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Protocol, Self, get_type_hints

from msgspec import convert

from formats.values import Struct
from formats.words import counted
from kctl.errors import Refused
from kctl.model import Json

if TYPE_CHECKING:
    from kctl.cluster.state import ClusterState


class Waited(NamedTuple):
    """Progress of an intent: `finished` of `total` items. Each line of `missing` names an unfinished item and why."""

    finished: int
    total: int
    missing: tuple[str, ...] = ()
    failed: str = ""  # it will never be done; the reason

    @property
    def is_done(self) -> bool:
        """Whether all of it is done."""
        return self.finished >= self.total


class Remainder(NamedTuple):
    """What an intent that was written has not reached: what is still set, and places that could not be read.

    `is_more`: it reaches further than what was written.
    """

    remaining: list[str]
    places: list[str]
    is_more: bool = False


class ConfigChange(Protocol):
    """A change of the configuration of an entity."""

    @property
    def entity_type(self) -> str: ...

    @property
    def entity_name(self) -> str: ...


REQUEST = "request"  # the action of a write that is a request of Kafka's protocol


class Write(Hashable, Protocol):
    """One write of a backend, with what it expects to find.

    `action` is create, set, delete, check (nothing written: the version must still hold) or request. `version` is the
    version read; None where the backend has none. `before` is the content read, None where there was nothing. With
    `sequence` the backend appends a number to the target.
    """

    @property
    def action(self) -> str: ...

    @property
    def target(self) -> str:
        """A znode's path; the name of a request elsewhere."""

    @property
    def after(self) -> bytes | None: ...

    @property
    def before(self) -> bytes | None: ...

    @property
    def version(self) -> int | None: ...

    @property
    def sequence(self) -> bool: ...

    @property
    def size_in_bytes(self) -> int:
        """Of the content written."""


class PlainWrite(Struct, frozen=True, kw_only=True):
    """A write of a znode, or any as the journal has it; see `Write`."""

    action: str
    target: str
    after: bytes | None = None
    before: bytes | None = None
    version: int | None = None
    sequence: bool = False

    @property
    def size_in_bytes(self) -> int:
        """Of the content written."""
        return len(self.after or b"")


class Worded(NamedTuple):
    """A field of an intent to be formatted: `{replicas}` is its value, `{replicas:partition}` is `3 partitions`."""

    value: Any

    def __format__(self, noun: str) -> str:
        return counted(len(self.value), noun) if noun else str(self.value)


class IntentCodec(NamedTuple):
    """How a field goes to JSON and comes back."""

    to_json: Callable[[Any], Json]
    from_json: Callable[[Any], Any]


BY_PARTITION = ("targets", "partitions", "chosen", "offsets")  # fields of intents
INVISIBLE = Waited(1, 1)


class Intent(Struct, frozen=True, kw_only=True):
    """Base of all kinds; `kind` is the stable name in the journal, `final` why there is no way back.

    `does` is what it does, as one clause, with the intent's fields: `{topic}`, or counted, `{replicas:partition}`.
    `codecs` has the fields that are not in JSON as they are.
    """

    kind: ClassVar[str]
    does: ClassVar[str]
    final: ClassVar[str] = ""
    codecs: ClassVar[Mapping[str, IntentCodec]] = {}
    needs_secret: ClassVar[bool] = False  # only the run that was given it can make the writes
    is_answered: ClassVar[bool] = False  # what takes it back follows from what brokers show after it
    told_once: ClassVar[str] = ""  # what only the run that carried it out was told, as a clause
    ends_throttles: ClassVar[bool] = False

    def __str__(self) -> str:
        """What it does: `create topic orders with 3 partitions`."""
        return self.does.format(**{name: Worded(getattr(self, name)) for name in self.__struct_fields__})

    # --- the journal ---

    def to_json(self) -> dict[str, Json]:
        """The intent's fields for the journal, without `kind`."""
        codecs = self.codecs
        return {
            name: codecs[name].to_json(getattr(self, name)) if name in codecs else getattr(self, name)
            for name in self.__struct_fields__
        }

    @classmethod
    def from_json(cls, values: Mapping[str, Json]) -> Self:
        """The inverse of `to_json`; KeyError, TypeError, ValueError or AttributeError for anything else."""
        types, codecs = get_type_hints(cls), cls.codecs
        return cls(
            **{
                name: codecs[name].from_json(values[name])
                if name in codecs
                else convert(values[name], types[name])
                for name in cls.__struct_fields__
            }
        )

    # --- what it concerns ---

    @property
    def parts(self) -> tuple[Intent, ...]:
        """The intents that it is made of."""
        return (self,)

    def topics_concerned(self) -> set[str] | None:
        """The topics whose state tells how far it is; None: all of them."""
        if topic := getattr(self, "topic", None):
            return {topic}
        return {tp.topic for name in BY_PARTITION for tp in getattr(self, name, ())}

    def config_types(self) -> tuple[str, ...]:
        """The entity types whose configurations tell how far it is."""
        return ("topics", "brokers") if self.throttle_changes else ()

    def brokers_of_disks(self) -> set[int]:
        """The brokers whose log directories tell how far it is."""
        return set()

    def topics_named(self) -> Collection[str]:
        """The topics that are looked for although brokers may hide them."""
        return ()

    @property
    def throttle_changes(self) -> Sequence[ConfigChange]:
        """The configuration changes that go with it, for a throttle."""
        return ()

    # --- whether it is done ---

    def how_far(self, state: ClusterState) -> Waited:
        """How far it is; one that nothing waits for is done."""
        return INVISIBLE

    def is_visible(self) -> bool:
        """Whether the cluster's state shows if it was done."""
        return type(self).how_far is not Intent.how_far

    def stands(self, state: ClusterState) -> bool:
        """Whether it was carried out, whatever is still waited for, of several that were under way."""
        return self.how_far(state).is_done

    def is_shown_written(self, state: ClusterState) -> bool:
        """Whether the state shows that it was carried out, of one that was on its way when kctl ended.

        What a controller uses up leaves no trace of its own, so that the cluster's state decides there.
        """
        # `how_far` of an intent that is not visible says that it is done; whether it was written is what is asked here.
        return self.is_visible() and self.how_far(state).is_done

    def leaves_no_trace(self, state: ClusterState) -> bool:
        """Whether the state looks the same before and after it, so that it is written again; twice does no harm."""
        return False

    def is_shown_by_users(self, users: Mapping[str, Mapping[str, int | None]]) -> bool:
        """Whether the users and their mechanisms show that it was carried out."""
        return False

    def is_refused_when_done(self, codes: Collection[int]) -> bool:
        """Whether these errors say that it was done before kctl ended."""
        return False

    @property
    def is_forgotten(self) -> bool:
        """Whether brokers forget it as they restart."""
        return False

    @property
    def may_be_lost(self) -> bool:
        """Whether it may be undone by itself later, so that it is to be written once more."""
        return False

    def bytes_left(
        self,
        state: ClusterState,
        sizes: Callable[[], Mapping[Any, int] | None],
    ) -> int | None:
        """Bytes still to be copied; None for one that copies nothing, or if brokers do not report sizes."""
        return None

    def seconds_to_come(self, now: float) -> float:
        """The seconds that it waits itself, from a time in seconds."""
        return 0.0

    # --- what is to be done after it was written ---

    def not_in_force(self, read_state: Callable[[], ClusterState]) -> list[str]:
        """The parts of its throttle that brokers do not apply although they were written, a clause each."""
        return []

    @property
    def topic_made(self) -> str:
        """The topic that it creates; empty for none."""
        return ""

    def is_as_made(self, state: ClusterState) -> bool:
        """Whether the topic is there as it was created."""
        return False

    def places_to_look(self) -> list[str]:
        """The places where something may be left of what it takes away; nothing to look for without."""
        return []

    def remainder(self, state: ClusterState, taken: Collection[str]) -> Remainder:
        """What is left of what it takes away; `taken`: the dead brokers of which a controller has taken it."""
        return Remainder([], [])

    def details_written(self) -> Mapping[str, Json]:
        """What the journal notes of it once it is written, by name of a detail and then by item."""
        return {}

    def forget(self) -> None:
        """Remove what was kept for it, once it is finished."""

    # --- what takes it back ---

    def inverse(self) -> Intent:
        """The intent that takes this one back; raises Refused with the exact reason where there is none."""
        raise Refused(f"{self} cannot be undone", self.final)

    @property
    def is_nothing(self) -> bool:
        """Whether it changes nothing, as an inverse may."""
        return False

    def refuse_dead(self, state: ClusterState) -> None:
        """Raise Refused where it would be refused at a later step, since a broker is not alive."""

    def lost_with(self, state: ClusterState, ends: Callable[[], Mapping[Any, int]]) -> Sequence[str]:
        """What was written since, and is gone with it, a sentence each."""
        return ()

    def refuse_changed(
        self,
        state: ClusterState,
        change_id: str,
        earlier: Sequence[Intent],
        noted: Callable[[str], Mapping[str, Json]],
    ) -> None:
        """Raise Refused where, as an inverse of one of `earlier`, it does not find what the change left.

        `noted` is what the journal says of a topic that was made.
        """
