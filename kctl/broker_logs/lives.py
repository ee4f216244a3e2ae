"""When each broker was up, shutting down, down or fenced, as it says itself and as controllers saw it."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from kctl.broker_logs.events import Event
from kctl.broker_logs.zones import iso

SERVERS = (
    "kafka.server.KafkaServer", "kafka.server.BrokerServer", "kafka.server.KafkaRaftServer",
    "kafka.server.BrokerLifecycleManager", "kafka.server.KafkaServerStartable",
)  # fmt: skip
# What a broker says of itself.
OWN = {
    "U11": "starting", "U12": "up", "U13": "stopping", "U14": "down", "U15": "controlled_shutdown", "U16": "starting",
    "U10": "up", "U20": "halted", "T25": "halted", "D04": "halted", "D05": "halted", "U06": "unclean_shutdown",
}  # fmt: skip
CONTROLLER_STARTS = "U17"
# What a controller says of others: state, field with the ids.
SEEN = {
    "E10": ("registered", "broker_ids"), "E11": ("down", "broker_ids"), "E13": ("controlled_shutdown", "broker_id"),
    "Q10": ("fenced", "broker_id"),
}  # fmt: skip


@dataclass
class BrokerState:
    """A change in the life of a broker."""

    broker_id: int
    time_ms: int
    state: str
    proofs: list[dict[str, object]] = field(default_factory=list)

    def row(self) -> dict[str, object]:
        """The row of kind `broker_state`."""
        from kctl.rows.state_log import BROKER_STATE

        return BROKER_STATE(
            broker_id=self.broker_id, time=iso(self.time_ms), state=self.state, evidence=self.proofs
        )


class Lives:
    """The states of brokers in order of time."""

    def __init__(self) -> None:
        self.states: list[BrokerState] = []
        self._own: dict[int, str] = {}
        self._latest: dict[int, int] = {}
        # How often each record was replayed, by any controller and by each since it started.
        self._replayed: Counter[str] = Counter()
        self._replayed_by: dict[int, Counter[str]] = {}

    def seen_until(self, broker_id: int | None, time_ms: int) -> None:
        """A broker printed something at this time."""
        if broker_id is not None and time_ms > self._latest.get(broker_id, time_ms - 1):
            self._latest[broker_id] = time_ms

    def note(self, event: Event, time_ms: int) -> None:
        """Take a line into account."""
        name = event.event or ""
        if name == CONTROLLER_STARTS:
            self._note_controller_start(event, time_ms)
        elif name in OWN:
            self._note_own(OWN[name], event, time_ms)
        elif name in SEEN:
            state, key = SEEN[name]
            ids = event.fields.get(key)
            for broker_id in ids if isinstance(ids, list) else [ids]:
                if isinstance(broker_id, int):
                    self.states.append(BrokerState(broker_id, time_ms, state, [event.proof()]))
        elif name in ("Q13", "Q14", "Q12", "Q15"):
            self._note_registration(event, time_ms)

    def _note_own(self, state: str, event: Event, time_ms: int) -> None:
        broker_id = event.broker_id
        if broker_id is None:
            return
        if event.event in ("U11", "U12", "U13", "U14", "U15") and not (event.logger or "").startswith(
            SERVERS
        ):
            return
        if state == "starting":
            self._note_killed(broker_id, event, time_ms)
        self._own[broker_id] = state
        self.states.append(BrokerState(broker_id, time_ms, state, [event.proof()]))

    def _note_killed(self, broker_id: int, event: Event, time_ms: int) -> None:
        """It starts; if it never said that it had stopped, its process was killed or its host died."""
        if self._own.get(broker_id) in (None, "down", "killed", "starting"):
            return
        until = event.paused_ms
        last = until if until is not None else self._latest.get(broker_id, time_ms)
        self.states.append(BrokerState(broker_id, min(last, time_ms), "killed", [event.proof()]))
        self._own[broker_id] = "killed"

    def _note_controller_start(self, event: Event, time_ms: int) -> None:
        """The controller of a node starts before its broker does, and replays what it has of the metadata log."""
        if event.broker_id is not None:
            self._replayed_by.pop(event.broker_id, None)
            self._note_killed(event.broker_id, event, time_ms)

    def _note_registration(self, event: Event, time_ms: int) -> None:
        """KRaft: fenced, unfenced and controlled shutdown, from the records that controllers replay."""
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
        if broker_id is None or state is None or self._is_history(event.broker_id, text):
            return
        # Every controller of the quorum replays the same record.
        for known in reversed(self.states[-50:]):
            if known.broker_id == broker_id and known.state == state and time_ms - known.time_ms < 10_000:
                return
        self.states.append(BrokerState(broker_id, time_ms, state, [event.proof()]))

    def _is_history(self, controller: int | None, text: str) -> bool:
        """Whether a controller only replays what was replayed before: all of them do, and each anew when it starts."""
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
        return sorted(self.states, key=lambda one: (one.time_ms, one.broker_id))
