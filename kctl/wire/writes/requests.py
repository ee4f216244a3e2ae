"""What a request is: typed from the plan to the wire, what it expects, how it is sent, and whether it has been done.

The protocol has no compare-and-set, so each request records what it expects, and that is read again just before it is
sent (`kctl.wire.writes.commit`). Requests are absolute: sending one twice does no harm. JSON is made for the journal and
read from it, and nowhere else.
"""

import json
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, ClassVar, NamedTuple, Protocol, Self

from msgspec import convert, to_builtins
from msgspec.structs import replace

from formats.values import Struct
from kctl.cluster.intent import REQUEST
from kctl.cluster.interface import Cluster, Conflict
from kctl.cluster.requests import needs
from kctl.cluster.rights import GROUP, RESOURCES, Right, grant, missing
from kctl.cluster.state import ClusterState, Replicas
from kctl.errors import BadValue, KctlError, Refused, RefusedItem
from kctl.model import Json, TopicPartition, values_by_path
from kctl.wire.adapter import SERVER_ROOM, BrokerError, NoAnswer, Wire, error_name

NOT_CONTROLLER, REQUEST_TIMED_OUT, TOPIC_ALREADY_EXISTS = 41, 7, 36
QUOTA_EXCEEDED = 89  # of changes of topics and partitions (KIP-599)
SENT_AGAIN = {NOT_CONTROLLER, QUOTA_EXCEEDED}
# Seconds to wait for a controller or such a quota, beyond the throttle time of each answer.
PATIENCE, PAUSE = 60.0, 0.1
# Meaning of an item's error: a bad name or value (exit status 2), could not be done (3), somebody was faster (4).
BAD_VALUES = frozenset({17, 37, 38, 39, 40, 42})
COULD_NOT = frozenset({3, 29, 30, 31, 58, 69, 100, 102, 127})
CONFLICTS = frozenset({85})
HINTS = {
    TOPIC_ALREADY_EXISTS: "no broker shows it: it was created just now, its deletion has not ended (brokers that hold it "
    "must run for that), or this user may not describe it"
}


class RequestItem(NamedTuple):
    """The result of one item of a request."""

    what: str
    error_code: int
    error_message: str | None
    topic: str | None = None
    partition: int | None = None
    right: Right | None = None  # that is missing
    principal: str = ""

    def refused(self, request: str) -> RefusedItem:
        """The item as callers see it."""
        return RefusedItem(
            request=request,
            what=self.what,
            error_code=self.error_code,
            error=error_name(self.error_code),
            reason=missing(self.right, self.principal) if self.right else self.error_message or None,
            topic=self.topic,
            partition=self.partition,
        )

    @property
    def reason(self) -> str:
        """Why it was not done, with the broker's message."""
        name = error_name(self.error_code)
        if self.right is not None:
            return f"{self.what}: {missing(self.right, self.principal)}"
        if self.error_code == QUOTA_EXCEEDED:
            return f"{self.what}: the quota of changes (controller_mutation_rate) is used up ({name})"
        message = (self.error_message or "").strip().rstrip(".")
        return f"{self.what}: {message} ({name})" if message else f"{self.what}: {name}"

    def error(self, done: str = "nothing was written") -> KctlError:
        """The exception for the item."""
        text = f"{self.reason}; {done}"
        if self.right is not None:
            return KctlError(text, grant([self.right], self.principal))
        if self.error_code in BAD_VALUES:
            return BadValue(text, "give what the broker asks for")
        if self.error_code in COULD_NOT:
            return BrokerError(text)
        if self.error_code in CONFLICTS:
            return Conflict(text)
        return Refused(
            text,
            HINTS.get(self.error_code, "the controller gave this reason; its controller.log may have more"),
        )


Quantifier = Callable[[Iterable[bool]], bool]
LOOK = "`kctl journal resume` looks and goes on"


class Line(NamedTuple):
    """A line about a request, for people: what changes, from which value, to which."""

    label: str
    before: str | None = None
    after: str | None = None


class PartitionRow(Struct, frozen=True, omit_defaults=True):
    """What a request says of a partition; the base of such rows."""

    topic: str
    partition: int

    @property
    def tp(self) -> TopicPartition:
        """The partition."""
        return TopicPartition(self.topic, self.partition)


class ReplicasOf(PartitionRow, frozen=True):
    """The replicas that a partition is to have; None ends the move that is under way."""

    replicas: Replicas | None


# Fields that are not shown: the target of the request names them already, or they are of no use to the reader.
UNSHOWN = frozenset(
    (
        *("entity_type", "entity_name", "topic", "group", "keep_factor", "election", "broker_id", "node_id"),
        *("id", "owner", "requester", "known", "expiry_timestamp"),
    )
)
ENDED = {("replicas", None): "(cancelled)", ("offset", -1): "(none)"}


class Request(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A request of Kafka's protocol that changes something; the base of all, each named as the protocol names it.

    `about` is what it is about, for people. The fields of each class that follow are its JSON in the journal, in their
    order; `expected` is what it was computed from.
    """

    is_validated: ClassVar[bool] = False  # whether the controller can validate it beforehand
    passing_errors: ClassVar[Collection[int]] = ()  # of its validation: they end within seconds
    is_to_be_seen: ClassVar[bool] = False  # what was acknowledged and does not show is an error
    replaces_earlier: ClassVar[bool] = False  # only the last of several in a change lasts
    how_to_look: ClassVar[str] = LOOK
    action: ClassVar[str] = REQUEST
    version: ClassVar[int | None] = None
    sequence: ClassVar[bool] = False

    about: str
    expected: Any = None

    def __hash__(self) -> int:
        # A large change has a request of the same words for each of its stages.
        return hash((type(self), self.about, *self.rows[:1]))

    # --- as the journal has it ---

    @classmethod
    def name(cls) -> str:
        """The name of the request."""
        return cls.__name__

    @property
    def target(self) -> str:
        """What is asked, and of what: `CreateTopics orders`."""
        return f"{self.name()} {self.about}"

    @property
    def after(self) -> bytes:
        """What it says, as JSON."""
        return json.dumps(self.content()).encode()

    @property
    def before(self) -> bytes | None:
        """What it expects, as JSON; None for nothing."""
        return None if self.expected is None else json.dumps(self.expectation()).encode()

    @property
    def size_in_bytes(self) -> int:
        """Of the JSON."""
        return len(self.after)

    def content(self) -> dict[str, Json]:
        """What it says, by field."""
        values: dict[str, Json] = to_builtins(self, str_keys=True)
        return {name: value for name, value in values.items() if name not in ("about", "expected")}

    def expectation(self) -> Json:
        """What it expects, as JSON values."""
        values: Json = to_builtins(self.expected, str_keys=True)
        return values

    @classmethod
    def read(cls, about: str, content: Mapping[str, Any], expectation: Any) -> Self:
        """The request again, from the JSON values of `content` and `expectation`. ValueError for anything else."""
        return convert({**content, "about": about, "expected": expectation}, cls, str_keys=True)

    # --- what it is about ---

    @property
    def rows(self) -> Sequence[PartitionRow]:
        """Its partitions; each has its own result in the answer."""
        rows: Sequence[PartitionRow] = getattr(self, "partitions", ())
        return rows

    @property
    def former_rows(self) -> Sequence[PartitionRow]:
        """What its partitions were when it was computed."""
        return ()

    @property
    def item_count(self) -> int:
        """The number of its items; each has its own result in the answer."""
        return len(self.rows) or 1

    def items(self) -> Iterator[Self]:
        """A request for each partition; other requests are carried out whole."""
        if not self.rows:
            yield self
        for row in self.rows:
            yield replace(self, partitions=(row,))

    def topics(self) -> set[str] | None:
        """The topics that it changes; None for all."""
        topic: str = getattr(self, "topic", "")
        return {*filter(None, [topic]), *(row.topic for row in self.rows)}

    def config_types(self) -> Collection[str]:
        """The entity types whose configurations it changes."""
        return ()

    def brokers_of_disks(self) -> Collection[int]:
        """The brokers between whose log directories it moves replicas."""
        return ()

    def dead_brokers(self) -> Collection[int]:
        """The dead brokers whose configuration it has the controller change."""
        return ()

    def resource(self, item: RequestItem) -> str:
        """The name of the resource on which a right is missing, by the item's error."""
        is_group = RESOURCES.get(item.error_code) == GROUP
        return str(getattr(self, "group", "") if is_group else item.topic or getattr(self, "topic", ""))

    # --- sent ---

    def send(self, wire: Wire, validate_only: bool) -> Iterator[RequestItem]:
        """Send it to the broker that carries it out: the results of its items. Raises NoAnswer, TooOld."""
        raise NotImplementedError

    def needs_rates(self, state: ClusterState) -> bool:
        """Whether throttles that were written before it have to be in force first."""
        return False

    def refuse_other_state(self, state: ClusterState) -> None:
        """Raise Conflict if the state that it was computed from has changed."""

    def refuse_other_answers(self, wire: Wire) -> None:
        """Raise Conflict if the answers of brokers that it was computed from have changed."""

    # --- has it been done? ---

    def is_shown(self, state: ClusterState) -> bool:
        """Whether the state shows what it asks for."""
        raise NotImplementedError

    def is_done(self, wire: Wire, state: ClusterState, of: Quantifier = all) -> bool:
        """Whether the cluster shows what it asks for; with `any` a part of it."""
        return of(item.is_shown(state) for item in (self.items() if of is any else [self]))

    def can_be_told(self, state: ClusterState) -> bool:
        """Whether the state shows if it was done: a value that brokers do not return looks as it did before."""
        return True

    def shows_at_once(self, state: ClusterState) -> bool:
        """Whether the state shows it once it is acknowledged."""
        return True

    # --- shown ---

    def lines(self) -> Iterator[Line]:
        """What it changes, a line each."""
        for field, value in self.content().items():
            yield from self.lines_of(field, value)

    def lines_of(self, field: str, value: Json) -> Iterator[Line]:
        """What it changes by one of its fields."""
        if field != "partitions":
            yield from plain_lines(field, value)
            return
        former = {row.tp: row for row in self.former_rows}
        for row in self.rows:
            was = former.get(row.tp)
            for name in row.__struct_fields__[2:]:
                new = getattr(row, name)
                shown = ENDED.get((name, new), new)
                if shown is not None:
                    yield line(f"{row.tp} {name}", getattr(was, name, None), shown)


def line(label: str, before: object, after: object) -> Line:
    """The line of a value that changes: texts as they are, other values as JSON; from None it is new."""
    return Line(label, None if before is None else _worded(before), _worded(after))


def _worded(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, separators=(",", ":"))


def plain_lines(field: str, value: Json) -> Iterator[Line]:
    """The values at any depth of a field, each by its path, as JSON; nothing of a field that is not shown."""
    if field in UNSHOWN or value is None or value == {}:
        return
    for path, text in values_by_path(value, field):
        yield Line(path, None, text)


def milliseconds(wire: Wire) -> int:
    """How long a broker may take."""
    return int(wire.access.timeout * 1000)


def ask(wire: Wire, request: Any, node: int | None = None) -> Any:
    """The answer to a request that changes something."""
    # A request that waits in the broker until its own time is over must not be lost by the client before that.
    return wire.send(request, node, timeout=wire.access.timeout + SERVER_ROOM)


def ask_leader(wire: Wire, request: Any) -> Any:
    """The answer of the active controller, at its own listener (KIP-919): it accepts configurations of dead brokers."""
    from kctl.wire.quorum import describe_quorum, read_quorum

    quorum = read_quorum(wire)
    leader = quorum.member(quorum.leader_id) if quorum else None
    for at in leader.endpoints if leader else ():
        try:  # before anything is sent that changes something
            wire.send_to(at.host, at.port, describe_quorum())
        except NoAnswer as error:
            raise KctlError(
                f"the active controller takes no request of this connection at {at.host}:{at.port} (listener "
                f"{at.listener}): {error.message.rpartition(': ')[2]}; nothing was written",
                "brokers do not pass this request on, and controllers may want other credentials or TLS than brokers: use "
                "settings that both accept",
            ) from None
        return wire.send_to(at.host, at.port, request)
    raise KctlError(
        f"the listener of the active controller is unknown: {needs('asking the active controller directly')}",
        "upgrade the controllers, or name them with --bootstrap-server",
    )


class WireCluster(Cluster, Protocol):
    """A cluster that is written to over its connections."""

    wire: Wire
    has_written: bool  # something that was not read back yet
