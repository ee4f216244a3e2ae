"""What failed in brokers by their logs, and why: halts, failed starts, failed log directories, threads that died.

When a broker ended is decided by its history; here it gets the cause that the exceptions in its logs bring, which may
stand in the line itself, in one before it, or in one after it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import TYPE_CHECKING

from formats.broker_logs.exceptions import KnownThrown, cause_of, thrown_in
from formats.broker_logs.threads import BrokerThread, thread_of
from formats.values import Struct
from kctl.broker_logs.events import Event
from kctl.findings import Finding, Place, Severity
from kctl.findings import failures as codes
from kctl.times import iso

if TYPE_CHECKING:
    from kctl.broker_logs.history.lives import BrokerState

# Lines of LogDirFailureChannel: it prints each directory's first error with its exception.
DIR_FAILURES = frozenset(
    ["D01", "X231", "X232", "O11", "X813", "A125", "A126", "A128", "A137", "A138", "X236", "X238"]
)
CHANNEL = "LogDirFailureChannel"
ENDS = frozenset(
    [
        "D04",
        "D05",
        "U20",
        "U22",
        "U23",
        "U24",
        "U25",
        "T25",
        "H73",
        "H74",
        "H75",
        "H23",
        "H27",
        "H46",
        "H51",
        "H56",
        "X82",
        "X595",
        "X604",
        "A115",
    ]
)
THREAD_DIED = "F235"
UNCLEANABLE = "A99"
FAILURE_LINES = DIR_FAILURES | ENDS | {THREAD_DIED, UNCLEANABLE}
CLEANERS = ("kafka.log.LogCleaner", "org.apache.kafka.storage.internals.log.LogCleaner")
WITHIN_MS = 60_000
"""So far apart may be the lines in which a process says why it ends."""
LOOKED_BACK = 60
MOST = 10_000
IN_DIR = re.compile(
    r"(?:.*\b)?dir(?:ectory)? (/\S+|[A-Za-z]:\\\S+|\S+)"
)  # the last: `deleting dir for a-0 in log dir /d`
IN_FILE = re.compile(r"\bcheckpoint file (\S+)[/\\][^/\\\s]+")
HOWS = {
    "truncation_not_allowed": "its log reaches beyond that of the leader, and unclean.leader.election.enable=false "
    "forbids it to truncate; compare the replicas with `kctl replica compare`",
    "out_of_memory": "its heap is used up; raise -Xmx (KAFKA_HEAP_OPTS)",
}
"""Why a broker ended, for logs without an exception that tells it."""
NO_REASON = "the logs do not say why"
TOLD_TO_STOP = "signal_in_startup"
NEVER_RAN = frozenset({"log_dir_locked", "port_taken", "broker_id_taken"})
"""Causes that another process has, which may be the broker itself."""


class LoggedCause(Struct):
    """A line that brings a cause."""

    broker_id: int | None
    time_ms: int
    file: str
    line: int
    event: str
    known: KnownThrown | None
    exception: str
    """The exception as it stands there, where no row knows it; else its class and message."""
    log_dir: str | None = None
    thread: str | None = None
    kind: BrokerThread | None = None
    topic: str | None = None
    partition: int | None = None
    is_cleaner: bool = False

    @property
    def id(self) -> str | None:
        """The cause in one word."""
        return self.known.cause.id if self.known is not None else None

    @property
    def says_why(self) -> bool:
        """Whether its exception is a cause and not the consequence of another."""
        return self.known is not None and not self.known.passes_on


class Failures:
    """Takes lines of brokers' logs in order of time."""

    def __init__(self) -> None:
        self.causes: list[LoggedCause] = []

    def note(self, event: Event) -> None:
        """Take a line into account."""
        if event.event not in FAILURE_LINES or event.time_ms is None or len(self.causes) >= MOST:
            return
        text = event.text
        is_channel = (event.logger or "").endswith(CHANNEL)
        if event.event in DIR_FAILURES and not is_channel:
            return
        known = cause_of(text)
        if event.event in ENDS and (known is None or known.passes_on):
            known = _cause_before(event) or known
        thrown = thrown_in(text)
        shown = known.thrown if known is not None else thrown[0] if thrown else None
        thread = thread_of(event.message) if event.event == THREAD_DIED else None
        partition = event.topic_partition
        log_dir = (IN_DIR.match(event.message) or IN_FILE.search(event.message)) if is_channel else None
        self.causes.append(
            LoggedCause(
                event.broker_id,
                event.time_ms,
                event.file,
                event.line,
                event.event or "",
                known,
                "" if shown is None else f"{shown.exception}: {shown.message}".removesuffix(": "),
                log_dir[1].rstrip(".") if log_dir else None,
                thread[0] if thread else None,
                thread[1] if thread else None,
                partition.topic if partition else None,
                partition.partition if partition else None,
                is_cleaner=event.event in (THREAD_DIED, UNCLEANABLE)
                and (event.logger or "").startswith(CLEANERS),
            )
        )

    def noted(self, events: Iterable[Event], templates: frozenset[str]) -> Iterator[Event]:
        """The events of some templates; all of them are taken into account."""
        for event in events:
            self.note(event)
            if event.event in templates:
                yield event

    def explain(self, states: Iterable[BrokerState]) -> None:
        """Set the cause of each state in which a broker ended by itself."""
        for state in states:
            if state.state == "halted":
                logged = self._cause_of(state)
                state.cause = logged.id if logged is not None else None

    def findings(self, states: Sequence[BrokerState]) -> Iterator[Finding]:
        """A finding for each end of a broker, failed log directory and thread that died; of copies of a line one."""
        up = [(state.broker_id, state.time_ms) for state in states if state.state == "up"]
        for state in states:
            if state.state != "halted" or state.how == TOLD_TO_STOP:
                continue
            logged = self._cause_of(state)
            proof = state.proofs[0] if state.proofs else {}
            line = proof.get("line")
            later = _first(up, state.broker_id, state.time_ms)
            is_over = later is not None or (
                logged is not None
                and logged.id in NEVER_RAN
                and any(broker_id == state.broker_id for broker_id, _ in up)
            )
            yield codes.BROKER_ENDED.at(
                Place(broker_id=state.broker_id, file=_text(proof.get("file"))),
                severity=Severity.INFO if is_over else None,
                broker="?" if state.broker_id is None else state.broker_id,
                time=iso(state.time_ms),
                how=(state.how or "halted").replace("_", " "),
                why=_why(logged) if logged else HOWS.get(state.how or "", NO_REASON),
                later=f"; it was up again at {iso(later)}" if later is not None else "",
                line=line,
            )
        told: set[tuple[object, ...]] = set()
        for logged in self.causes:
            key: tuple[object, ...]
            later = _first(up, logged.broker_id, logged.time_ms)
            severity = Severity.INFO if later is not None else None
            place = Place(
                broker_id=logged.broker_id,
                topic=logged.topic,
                partition=logged.partition,
                file=logged.file,
                line=logged.line,
            )
            details = {
                "broker": "?" if logged.broker_id is None else logged.broker_id,
                "time": iso(logged.time_ms),
                "why": _why(logged),
                "later": f"; the broker started again at {iso(later)}" if later is not None else "",
            }
            if logged.log_dir is not None:
                key = "dir", logged.broker_id, logged.log_dir, later
                if key not in told:
                    told.add(key)
                    yield codes.LOG_DIR_FAILED.at(place, severity=severity, log_dir=logged.log_dir, **details)
            elif logged.event == THREAD_DIED:
                key = "thread", logged.broker_id, logged.thread, later
                if key not in told:
                    told.add(key)
                    stops = logged.kind.stops if logged.kind else "What it did is no longer done."
                    yield codes.THREAD_DIED.at(
                        place,
                        severity=severity,
                        thread=logged.thread or "without a name",
                        stops=stops,
                        **details,
                    )
            elif logged.event == UNCLEANABLE:
                key = "uncleanable", logged.broker_id, logged.topic, logged.partition, later
                if key not in told:
                    told.add(key)
                    yield codes.UNCLEANABLE.at(
                        place, severity=severity, partition=f"{logged.topic}-{logged.partition}", **details
                    )

    def cleaners_stopped(self, states: Sequence[BrokerState]) -> dict[int, LoggedCause]:
        """By broker the death of its cleaner's thread, where the broker did not start again after it."""
        up = [(state.broker_id, state.time_ms) for state in states if state.state == "up"]
        return {
            logged.broker_id: logged
            for logged in reversed(self.causes)
            if logged.event == THREAD_DIED
            and logged.is_cleaner
            and logged.broker_id is not None
            and _first(up, logged.broker_id, logged.time_ms) is None
        }

    def _cause_of(self, state: BrokerState) -> LoggedCause | None:
        """What brings the cause of a broker's end: its own line, or the nearest other line of the broker."""
        places = {(proof.get("file"), proof.get("line")) for proof in state.proofs}
        near = [
            logged
            for logged in self.causes
            if (logged.broker_id == state.broker_id or (logged.file, logged.line) in places)
            and abs(logged.time_ms - state.time_ms) <= WITHIN_MS
            and logged.event not in (THREAD_DIED, UNCLEANABLE)
        ]

        def rank(logged: LoggedCause) -> tuple[bool, bool, bool, int]:
            is_own = (logged.file, logged.line) in places
            return (
                not logged.says_why,
                not is_own,
                logged.time_ms > state.time_ms,
                abs(logged.time_ms - state.time_ms),
            )

        return min((logged for logged in near if logged.exception), key=rank, default=None)


def _cause_before(event: Event) -> KnownThrown | None:
    """The cause in one of the last lines before it that name an exception."""
    time_ms = event.time_ms or 0
    for earlier in islice(event.earlier(), LOOKED_BACK):
        if earlier.time_ms is not None and time_ms - earlier.time_ms > WITHIN_MS:
            return None
        if b"Exception" in earlier.record or b"Error: " in earlier.record:
            if not re.search(rb"\b(?:ERROR|FATAL|WARN)\b", earlier.record[:200]):
                continue
            known = cause_of(earlier.record.decode("utf-8", "backslashreplace"))
            if known is not None and not known.passes_on and not known.cause.stops.startswith("request"):
                return known
    return None


def meaning_of(known: KnownThrown) -> str:
    """What an exception means; of a metadata.version also which release it is of."""
    from kctl.cluster.feature_levels import LEVELS, METADATA_VERSION

    if known.cause.id != "metadata_version_unknown":
        return known.meaning
    releases = {str(level.level): level.release for level in LEVELS[METADATA_VERSION]}
    release = releases.get(known.fields.get("level", ""))
    return f"{known.meaning} It is that of {release}." if release else known.meaning


def _first(up: list[tuple[int | None, int]], broker_id: int | None, time_ms: int) -> int | None:
    """When a broker was up first after a time."""
    return min((at for broker, at in up if broker == broker_id and at > time_ms), default=None)


def _why(logged: LoggedCause) -> str:
    if not logged.exception:
        return NO_REASON
    exception = logged.exception[:300]
    if logged.known is None:
        return f"{exception}, which kctl does not know"
    cause = logged.known.cause
    return f"{cause.id.replace('_', ' ')} ({exception}). {meaning_of(logged.known)} {cause.action}".rstrip(
        "."
    )


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None
