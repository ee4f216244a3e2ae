"""When each broker was up, shutting down, down or fenced, as it says itself and as controllers saw it."""

from __future__ import annotations

import itertools
import re
from bisect import bisect_left
from collections import Counter, deque

from formats.values import Struct, field
from kctl.broker_logs.events import Event
from kctl.broker_logs.history.leaderships import SURE
from kctl.broker_logs.history.words import is_fencing, unfenced_since
from kctl.text_logs.blocks import Earlier
from kctl.times import iso

SERVERS = (
    "kafka.server.KafkaServer", "kafka.server.BrokerServer", "kafka.server.KafkaRaftServer",
    "kafka.server.BrokerLifecycleManager", "kafka.server.KafkaServerStartable",
)  # fmt: skip
# What a broker says of itself.
OWN = {
    "U11": "starting", "U12": "up", "U13": "stopping", "U14": "down", "U15": "controlled_shutdown", "U16": "starting",
    "U10": "up", "U06": "unclean_shutdown",
    **dict.fromkeys(("U20", "U22", "U23", "U24", "U25", "T25", "D04", "D05"), "halted"),
}  # fmt: skip
# What a process of KRaft says before its broker starts, which does not show yet that it has one.
CONTROLLER_STARTS = ("U17", "W65")
CONTROLLER_SERVER = "kafka.server.ControllerServer"
SIGNALLED = "U26"
STARTUP_FAILS = "U20"
# How a process ended that says so; what its line or the stack trace says more exactly comes first.
ENDS = {
    "U20": "fatal_error_in_startup", "U22": "fatal_error_in_shutdown", "U23": "fatal_error", "U24": "halted_in_shutdown",
    "U25": "fatal_error", "T25": "truncation_not_allowed", "D04": "log_dir_failed", "D05": "log_dir_failed",
}  # fmt: skip
REASONS = (
    (re.compile(r"[Ff]ailed to acquire lock on file"), "log_dir_locked"),
    (re.compile(r"Address already in use|BindException"), "port_taken"),
    (
        re.compile(r"[Bb]roker is already registered|NodeExists|DuplicateBrokerRegistration"),
        "broker_id_taken",
    ),
    (re.compile(r"OutOfMemoryError"), "out_of_memory"),
)
# What the process that has it may still hold while another one fails for want of it.
TAKEN = frozenset(("log_dir_locked", "port_taken", "broker_id_taken"))
OPEN = frozenset(("starting", "up", "stopping", "controlled_shutdown", "unclean_shutdown"))
# Classes that start the server: they log its end once more, without a broker id. Before 0.8.2 only they say that a start
# failed.
SAID_AGAIN = ("kafka.server.KafkaServerStartable", "kafka.Kafka$")
# States in which a line says again how a process ended: the hook of a process that ends by itself stops it once more.
ENDED = {
    "stopping": ("down", "halted"), "halted": ("down", "halted"), "down": ("down",),
    "controlled_shutdown": ("down", "halted"), "unclean_shutdown": ("down", "halted"),
}  # fmt: skip
# A process has said again how it ended by then; what comes later is of another, whose start is not in the logs.
SAID_AGAIN_WITHIN = 60_000
HOOK_WITHIN = 1_000
# The first line that a process prints, from 1.1 and before 0.9; and others that come before it says that it starts.
FIRST = re.compile(rb"Registered `?kafka:type=kafka\.Log4jController|Verifying properties|preRegister called")
EARLY = re.compile(
    rb"KafkaConfig values:|Property [\w.]+ is overridden|Registered signal handlers|Setting -D jdk\.tls"
)
SAYS_END = re.compile(rb"shut down completed|Fatal error during")
SAYS_START = re.compile(
    rb"[Ss]tarting(?: broker| controller)? \(kafka\.server\.(?:Kafka|Broker|Controller)Server\)"
)
# How many lines of other kinds may stand among those.
AMONG = 12
# A process that starts prints some lines before it says so; before it there was none for a while.
PAUSE = 1000
MOST_BEFORE = 20
# What a controller says of others: state, field with the ids.
SEEN = {
    "E10": ("registered", "broker_ids"), "E11": ("down", "broker_ids"), "E13": ("controlled_shutdown", "broker_id"),
    "Q10": ("fenced", "broker_id"),
}  # fmt: skip


TOLD = frozenset((*OWN, *SEEN, *CONTROLLER_STARTS, SIGNALLED))
# So many lines are remembered to know their copies in other files by.
MOST_SAID = 2_000


class BrokerState(Struct):
    """A change in the life of a broker."""

    broker_id: int | None
    time_ms: int
    state: str
    proofs: list[dict[str, object]] = field(default_factory=list)
    how: str | None = None
    """How it ended, where it did."""
    until_ms: int | None = None
    """Of a kill: the first line of the next process, so that the kill lies between the two times."""
    cluster: int = 1
    """The number of the cluster among those that followed each other on the same disks."""
    clock_offset_ms: int | None = None
    cause: str | None = None
    """What the exceptions near its end say, see `kctl.broker_logs.failures`."""

    def row(self) -> dict[str, object]:
        """The row of kind `broker_state`."""
        from kctl.rows.state_log import BROKER_STATE

        return BROKER_STATE(
            broker_id=self.broker_id,
            time=iso(self.time_ms),
            state=self.state,
            evidence=self.proofs,
            how=self.how,
            until_time=None if self.until_ms is None else iso(self.until_ms),
            cluster=self.cluster,
            cause=self.cause,
            strength=SURE,
            topic_id=None,
            clock_offset_ms=self.clock_offset_ms,
        )


class _Life(Struct):
    """What a broker said of itself last."""

    state: str | None = None
    since_ms: int = 0
    started: frozenset[str] = frozenset()
    """Templates with which its process said that it starts."""
    was_signalled: bool = False
    """Whether it was told to stop before it had started."""
    is_controller_over: bool = False
    """Whether its controller stopped before it said that a broker starts."""
    killed: BrokerState | None = None
    """The kill of the process before it, told when it started."""
    before: _Life | None = None
    """The process before it, which still runs where this one failed to start since the other holds its files or port."""
    is_start_missing: bool = False
    """Whether the logs have the end of the process before it and not its own start, and so may lack its own end too."""
    other_failed_ms: int | None = None
    """When another process ended that never became the broker; it then says that it exits and is shutting down."""
    alive_ms: int | None = None
    """When it printed its last line before that process began."""
    dirs_failed_ms: int | None = None
    """When all log directories failed while it was starting."""


class Lives:
    """The states of brokers in order of time."""

    def __init__(self) -> None:
        self.states: list[BrokerState] = []
        self._cluster = 1
        # By broker; what no line says the broker of goes under None.
        self._own: dict[int | None, _Life] = {}
        # Times of the latest lines of each broker, in order.
        self._latest: dict[int, deque[int]] = {}
        # What was said, and the file that said it first.
        self._said: dict[tuple[object, ...], str] = {}
        # How often each record was replayed, by any controller and by each since it started.
        self._replayed: Counter[str] = Counter()
        self._replayed_by: dict[int, Counter[str]] = {}

    def seen(self, broker_id: int, time_ms: int) -> None:
        """Note that a broker logged something at this time."""
        latest = self._latest.get(broker_id)
        if latest is None:
            latest = self._latest[broker_id] = deque(maxlen=200)
        latest.append(time_ms)

    def note(self, event: Event, time_ms: int, cluster: int = 1) -> None:
        """Take a line of a cluster into account."""
        if event.event in TOLD and self._is_copy(event):
            return
        self._cluster = cluster
        self._note_line(event, time_ms)

    def _add_state(
        self, broker_id: int | None, time_ms: int, state: str, event: Event, how: str | None = None
    ) -> None:
        self.states.append(
            BrokerState(broker_id, time_ms, state, [event.proof()], how, cluster=self._cluster)
        )

    def _is_copy(self, event: Event) -> bool:
        """Whether another file has the same line: captured standard output repeats what the other logs hold."""
        line = (event.event, event.broker_id, event.logged_ms, event.message)
        if len(self._said) >= MOST_SAID:
            self._said = dict(list(self._said.items())[MOST_SAID // 2 :])
        return self._said.setdefault(line, event.file) != event.file

    def _note_line(self, event: Event, time_ms: int) -> None:
        name = event.event or ""
        if name in CONTROLLER_STARTS:
            self._note_controller_start(event, time_ms)
        elif name == SIGNALLED:
            life = self._own.get(event.broker_id)
            if life is not None and life.state == "starting":
                life.was_signalled = True
        elif name in OWN:
            self._note_own(OWN[name], event, time_ms)
        elif name in SEEN:
            state, key = SEEN[name]
            ids = event.fields.get(key)
            for broker_id in ids if isinstance(ids, list) else [ids]:
                if isinstance(broker_id, int):
                    self._add_state(broker_id, time_ms, state, event)
        elif name in ("Q13", "Q14", "Q12", "Q15"):
            self._note_registration(event, time_ms)
        elif (since_ms := unfenced_since(event, time_ms)) is not None:
            self.states = [
                state
                for state in self.states
                if state.time_ms < since_ms or not is_fencing(state.proofs[0], event.file)
            ]

    def _note_own(self, state: str, event: Event, time_ms: int) -> None:
        broker_id = event.broker_id
        if event.event in ("U11", "U12", "U13", "U14", "U15") and not (event.logger or "").startswith(
            SERVERS
        ):
            self._note_controller_end(event)
            return
        if state == "starting":
            self._begin(event, time_ms)
            self._add_state(broker_id, time_ms, state, event)
            return
        if state == "stopping" and any(
            b"Exiting Kafka" in before_it.record for before_it in itertools.islice(event.earlier(), 1)
        ):
            return  # by the hook of the process that exits, whose end was told
        known = self._own.get(broker_id)
        failed_ms = known.other_failed_ms if known is not None else None
        if (
            (state == "stopping" or event.event == "U23")
            and failed_ms is not None
            and time_ms - failed_ms < HOOK_WITHIN
        ):
            return
        how = _how_it_ended(event) if state == "halted" else None
        if broker_id is None and how in TAKEN:
            broker_id = self._only_one_starting(time_ms)
        is_nobodys = broker_id is None
        life = self._own.setdefault(broker_id, _Life())
        if life.state == ("halted" if is_nobodys else "down") and time_ms - life.since_ms > SAID_AGAIN_WITHIN:
            life = self._own[broker_id] = _Life(is_start_missing=True)
        if (
            life.dirs_failed_ms is not None
            and HOOK_WITHIN <= time_ms - life.dirs_failed_ms < SAID_AGAIN_WITHIN
            and self._take_back_kill(life)
        ):
            # Its process would have ended at once: it was that of the process before it, which has ended now.
            life.state, life.before, life.dirs_failed_ms = "starting", None, None
        # What is up has no error at its start: it is the process before it that says that it has started.
        is_of_last = life.state != "up" or event.event == STARTUP_FAILS
        is_nameless = broker_id is None or event.event == STARTUP_FAILS
        is_said_again = is_nameless and life.state != "starting" and (event.logger or "").endswith(SAID_AGAIN)
        if event.event == "U23" and _failed_before_its_start(event):
            how = "fatal_error_before_start" if how == "fatal_error" else how
        elif (
            is_said_again
            or (event.event == "U23" and life.state == "up")
            or life.state in ENDED.get(state, ())
        ):
            return
        else:
            if how == "log_dir_failed" and life.state == "starting":
                life.dirs_failed_ms = time_ms
            if state == "up" and life.state != "starting":  # a start of no known broker was its own
                self._own.pop(None, None)
            life.state, life.since_ms = state, time_ms
        self._add_state(event.broker_id, time_ms, state, event, how)
        if how in TAKEN and is_of_last and life.before is not None and life.killed in self.states:
            life.before.alive_ms = life.killed.time_ms
            life.before.other_failed_ms = time_ms
            self._take_back_kill(life)
            if event.broker_id is None:  # it says no more with its id; what follows is of the one that runs
                self._own[broker_id] = life.before
        elif state == "down" and life.before is not None and life.killed is None:
            self._own[broker_id] = life.before
            life.before.other_failed_ms = time_ms

    def _take_back_kill(self, life: _Life) -> bool:
        """Take back that the process before was killed; whether that had been said."""
        if life.killed not in self.states:
            return False
        self.states.remove(life.killed)
        life.killed = None
        return True

    def _only_one_starting(self, time_ms: int) -> int | None:
        """The broker that is starting, if there is only one: the end of a process that failed to start names no broker."""
        starting = [
            broker_id
            for broker_id, life in self._own.items()
            if life.state == "starting" and time_ms - life.since_ms < SAID_AGAIN_WITHIN
        ]
        return starting[0] if len(starting) == 1 else None

    def _begin(self, event: Event, time_ms: int) -> None:
        """Note that a process starts; it says so more than once, as controller and then as broker."""
        broker_id = event.broker_id
        if broker_id is None:
            self._own[None] = _Life("starting")
            return
        name = event.event or ""
        life = self._own.get(broker_id, _Life())
        if life.is_controller_over and name not in CONTROLLER_STARTS:
            # A process that is told to stop as it starts goes on to start its broker.
            life.state, life.is_controller_over = "starting", False
        if life.state == "starting" and life.started and name not in life.started:
            life.started |= {name}
            return
        if life.before is not None and life.killed is None:
            life = life.before  # the process between them never became the broker
        killed = (
            self._kill_of(broker_id, event, time_ms)
            if life.state in OPEN and not life.is_start_missing
            else None
        )
        before = life if killed is not None else None
        self._own[broker_id] = _Life("starting", time_ms, frozenset((name,)), killed=killed, before=before)

    def _kill_of(self, broker_id: int, event: Event, time_ms: int) -> BrokerState:
        """The kill of the process before: a broker starts whose last process never said that it stopped."""
        first_ms, old = _end_of_process_before(event, time_ms)
        proofs = [event.proof()]
        how = "no_shutdown"
        last_ms = None
        if old is not None:
            proofs.append(old.proof())
            last_ms = old.time_ms
            if any(b"OutOfMemoryError" in before_it.record for before_it in event.earlier()):
                how = "out_of_memory"
        latest = list(self._latest.get(broker_id, ()))
        others = bisect_left(latest, first_ms)
        if others and (last_ms is None or latest[others - 1] > last_ms):
            last_ms = latest[others - 1]
        at = min(first_ms if last_ms is None else last_ms, first_ms)
        life = self._own[broker_id]
        if life.before is not None and life.killed is None:
            life = life.before
        if (
            life.alive_ms is not None
            and life.other_failed_ms is not None
            and at < life.other_failed_ms + HOOK_WITHIN
        ):
            # What came later is of the other process.
            at = life.alive_ms
            del proofs[1:]
        killed = BrokerState(broker_id, at, "killed", proofs, how, first_ms, self._cluster)
        if self._own[broker_id].was_signalled:
            # It stops what it has started so far, and has no broker that could say that it shut down.
            killed.state, killed.how = "halted", "signal_in_startup"
        self.states.append(killed)
        return killed

    def _note_controller_start(self, event: Event, time_ms: int) -> None:
        """Note that the controller of a node starts, before its broker: it replays what it has of the metadata log."""
        if event.broker_id is not None:
            self._replayed_by.pop(event.broker_id, None)
            self._begin(event, time_ms)

    def _note_controller_end(self, event: Event) -> None:
        """Note that a process with a controller alone stops; no broker logs that."""
        life = self._own.get(event.broker_id)
        if (
            (event.logger or "").startswith(CONTROLLER_SERVER)
            and life is not None
            and life.state == "starting"
            and life.started <= frozenset(CONTROLLER_STARTS)
        ):
            life.state, life.is_controller_over = "down", True

    def _note_registration(self, event: Event, time_ms: int) -> None:
        """Note that a broker is fenced, unfenced or in controlled shutdown, by the records that KRaft controllers replay."""
        broker_id = event.number("broker_id")
        text = event.message
        state = None
        if "inControlledShutdown=1" in text or "controlled shutdown" in text:
            state = "controlled_shutdown"
        elif "fenced=-1" in text or "UnfenceBroker" in text or "Unfenced broker" in text:
            state = "unfenced"
        elif "fenced=1" in text or "FenceBrokerRecord" in text or "Fenced broker" in text:
            state = "fenced"
        elif "Register" in text:
            state = "registered"
        if broker_id is None or state is None or self._is_replayed(event.broker_id, text):
            return
        # Every controller of the quorum replays the same record.
        for known in reversed(self.states[-50:]):
            if known.broker_id == broker_id and known.state == state and time_ms - known.time_ms < 10_000:
                return
        self._add_state(broker_id, time_ms, state, event)

    def _is_replayed(self, controller: int | None, text: str) -> bool:
        """Whether a controller replays a record that was replayed before, as each does whenever it starts."""
        _, replays, record = text.partition("Replayed ")
        if not replays or controller is None:
            return False
        own = self._replayed_by.setdefault(controller, Counter())
        own[record] += 1
        if own[record] <= self._replayed[record]:
            return True
        self._replayed[record] = own[record]
        return False

    def finished(self) -> list[BrokerState]:
        """States in order of time."""
        return sorted(
            self.states, key=lambda state: (state.time_ms, -1 if state.broker_id is None else state.broker_id)
        )


def _how_it_ended(event: Event) -> str:
    """How a process ended, by its last words and the stack trace with them."""
    text = event.text
    return next((how for reason, how in REASONS if reason.search(text)), ENDS[event.event or ""])


def _failed_before_its_start(event: Event) -> bool:
    """Whether a process that exits had not yet said that it starts."""
    for earlier in event.earlier():
        if SAYS_START.search(earlier.record) or SAYS_END.search(earlier.record):
            return False
        if FIRST.search(earlier.record):
            return True
    return False


def _end_of_process_before(event: Event, time_ms: int) -> tuple[int, Earlier | None]:
    """The time of the first line of the process that starts, and the last line of the one before it in this log."""
    earlier = list(event.earlier())
    if event.source.broker_id is None:
        # Several brokers write to this log: only what names this one is known to be its own.
        for record in earlier:
            if record.broker_id == event.broker_id:
                if not EARLY.search(record.record):
                    return time_ms, record
                time_ms = time_ms if record.time_ms is None else record.time_ms
        return time_ms, None
    first = -1
    others = 0
    for index, record in enumerate(earlier):
        if FIRST.search(record.record):
            # A process that was killed behind its first lines never said that it starts.
            while index < len(earlier) and (text := earlier[index].record):
                if FIRST.search(text):
                    first = index
                elif not EARLY.search(text):
                    break
                index += 1
            break
        if SAYS_START.search(record.record) or others > AMONG:
            break
        if EARLY.search(record.record):
            first, others = index, 0
        else:
            others += 1
    if first < 0:
        first = _before_a_pause([time_ms, *(record.time_ms for record in earlier[:MOST_BEFORE])]) - 1
    first_ms = earlier[first].time_ms if first >= 0 else time_ms
    old = earlier[first + 1] if first + 1 < len(earlier) else None
    return (time_ms if first_ms is None else first_ms), old


def _before_a_pause(times: list[int | None]) -> int:
    """The index of the last time that follows a pause; 0 where no time does."""
    for index, (after, before) in enumerate(itertools.pairwise(times)):
        if after is not None and before is not None and after - before >= PAUSE:
            return index
    return 0
