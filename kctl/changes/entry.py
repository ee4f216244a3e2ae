"""A change as the journal keeps it: who, when, why, what was read, what is written, and how to take it back.

JSON both ways. Contents of znodes are kept with secrets redacted, with the digest of the real bytes beside
them; intents are what resume and undo work from.
"""

import getpass
import hashlib
import os
import secrets
import socket
from base64 import b64decode, b64encode
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any, cast

from formats.secrets import redact
from formats.values import Struct, field
from kctl.changes.intents import intent_from_json, intent_to_json
from kctl.changes.plan import Plan, Stage
from kctl.cluster.intent import Intent, PlainWrite, Write
from kctl.errors import Refused
from kctl.model import Json

FORMAT = 1
PLAIN = ("id", "time", "who", "command", "backend", "location", "title")
OPTIONAL = ("reason", "cluster_id", "kafka_version", "undoes", "undone_by", "outcome")
ACTIONS = ("create", "set", "delete", "check", "request")
STAGE_STATES = ("planned", "writing", "written", "finished", "refused")
WRITTEN = ("written", "finished")


class RecordedStage(Struct, kw_only=True):
    """A stage and how far it has come. `writes` leaves out those whose content had to be redacted."""

    intent: Intent
    writes: tuple[Write, ...] = ()
    state: str = "planned"
    undo: tuple[Intent, ...] = ()
    undo_refused: str = ""  # why nothing takes it back
    is_begun: bool = False  # a part of it was carried out, whatever came of the rest

    @property
    def may_be_written(self) -> bool:
        """Whether anything of it may stand in the cluster."""
        return self.is_begun or self.state in ("writing", *WRITTEN)

    @property
    def is_part(self) -> bool:
        """Whether a part of it stands in the cluster, and not all of it."""
        return self.is_begun and self.state not in WRITTEN


class Entry(Struct, kw_only=True):
    """One change."""

    id: str
    time: str
    who: str
    command: str
    reason: str | None
    cluster_id: str | None
    backend: str
    location: str
    kafka_version: str | None
    title: str
    stages: list[RecordedStage]
    details: dict[str, Json] = field(default_factory=dict)
    undoes: str | None = None
    undone_by: str | None = None
    outcome: str | None = None

    @property
    def state(self) -> str:
        """One of planned, applied, partly_applied, undone."""
        if self.undone_by:
            return "undone"
        written = [stage.state in WRITTEN for stage in self.stages]
        if all(written):
            return "applied"
        touched = any(stage.may_be_written for stage in self.stages)
        return "partly_applied" if touched else "planned"

    @property
    def is_finished(self) -> bool:
        """Whether every stage was seen to be done."""
        return all(stage.state == "finished" for stage in self.stages)

    def to_json(self) -> dict[str, Json]:
        """The content of the journal file."""
        return {
            "format": FORMAT,
            "id": self.id,
            "time": self.time,
            "who": self.who,
            "command": self.command,
            "reason": self.reason,
            "cluster_id": self.cluster_id,
            "backend": self.backend,
            "location": self.location,
            "kafka_version": self.kafka_version,
            "title": self.title,
            "state": self.state,
            "stages": [_stage_to_json(stage) for stage in self.stages],
            "details": self.details,
            "undoes": self.undoes,
            "undone_by": self.undone_by,
            "outcome": self.outcome,
        }

    @classmethod
    def from_json(cls, values: Mapping[str, Json]) -> "Entry":
        """The inverse of `to_json`; raises KeyError, TypeError or ValueError for anything else."""
        if values["format"] != FORMAT:
            raise ValueError(f"format {values['format']!r}, and this kctl reads {FORMAT}")
        for name in (*PLAIN, *OPTIONAL):
            if not isinstance(values.get(name), str if name in PLAIN else str | None):
                raise TypeError(f"{name} is {values.get(name)!r}")
        stages = [_stage_from_json(stage) for stage in cast(list[dict[str, Json]], values["stages"])]
        return cls(
            **{name: cast(Any, values[name]) for name in PLAIN},
            **{name: cast(Any, values.get(name)) for name in OPTIONAL},
            stages=stages,
            details=cast(dict[str, Json], values.get("details") or {}),
        )


def new_entry(
    plan: Plan,
    *,
    command: str,
    reason: str | None,
    cluster_id: str | None,
    backend: str,
    location: str,
    kafka_version: str | None,
    undoes: str | None = None,
) -> Entry:
    """The entry of a plan that nothing has been written of yet."""
    now = datetime.now(UTC)
    return Entry(
        id=f"{now:%Y-%m-%dT%H:%M:%SZ}-{secrets.token_hex(3)}",
        time=f"{now:%Y-%m-%dT%H:%M:%S}.{now.microsecond // 1000:03d}Z",
        who=_who(),
        command=command,
        reason=reason,
        cluster_id=cluster_id,
        backend=backend,
        location=location,
        kafka_version=kafka_version,
        title=plan.title,
        stages=[recorded(stage) for stage in plan.stages],
        details=dict(plan.details),
        undoes=undoes,
    )


def _who() -> str:
    try:
        name = os.environ.get("SUDO_USER") or getpass.getuser()
    except (KeyError, OSError):
        name = str(os.getuid())
    return f"{name}@{socket.gethostname()}"


def recorded(stage: Stage) -> RecordedStage:
    """A stage that nothing has been written of, with what takes it back."""
    if stage.undo is not None:
        return RecordedStage(intent=stage.intent, writes=stage.writes, undo=stage.undo)
    try:
        return RecordedStage(intent=stage.intent, writes=stage.writes, undo=(stage.intent.inverse(),))
    except Refused as refused:
        return RecordedStage(intent=stage.intent, writes=stage.writes, undo_refused=str(refused))


def _stage_to_json(stage: RecordedStage) -> Json:
    return {
        "intent": intent_to_json(stage.intent),
        "state": stage.state,
        "writes": [_write_to_json(write) for write in stage.writes],
        "undo": [intent_to_json(intent) for intent in stage.undo],
        "undo_refused": stage.undo_refused or None,
        "is_begun": stage.is_begun,
    }


def _stage_from_json(values: Mapping[str, Json]) -> RecordedStage:
    state = str(values["state"])
    if state not in STAGE_STATES:
        raise ValueError(f"state {state!r}")
    writes = [_write_from_json(write) for write in cast(list[dict[str, Json]], values["writes"])]
    return RecordedStage(
        intent=intent_from_json(cast(dict[str, Json], values["intent"])),
        writes=tuple(write for write in writes if write is not None),
        state=state,
        undo=tuple(intent_from_json(intent) for intent in cast(list[dict[str, Json]], values["undo"])),
        undo_refused=str(values.get("undo_refused") or ""),
        is_begun=values.get("is_begun") is True,
    )


@lru_cache(1 << 16)  # a large change is written for each of its stages
def _write_to_json(write: Write) -> Json:
    before, after = write.before, write.after  # those of a request are made when they are asked for
    return {
        "action": write.action,
        "target": write.target,
        "version": write.version,
        "sequence": write.sequence,
        "before": _content(write.target, before),
        "after": _content(write.target, after),
        "after_sha256": None if after is None else hashlib.sha256(after).hexdigest(),
    }


def _content(target: str, data: bytes | None) -> Json:
    if data is None:
        return None
    shown = redact(target, data)
    try:
        return shown.decode("utf-8")
    except UnicodeDecodeError:
        return {"base64": b64encode(shown).decode()}


def _bytes(value: Json) -> bytes | None:
    if isinstance(value, dict):
        return b64decode(str(value["base64"]))
    return None if value is None else str(value).encode()


def _write_from_json(values: Mapping[str, Json]) -> Write | None:
    """The write again; None where its content is not there in full."""
    after = _bytes(values["after"])
    if after is not None and hashlib.sha256(after).hexdigest() != values["after_sha256"]:
        return None
    version = values["version"]
    if values["action"] not in ACTIONS:
        raise ValueError(f"action {values['action']!r}")
    return PlainWrite(
        action=str(values["action"]),
        target=str(values["target"]),
        after=after,
        before=_bytes(values["before"]),
        version=None if version is None else int(str(version)),
        sequence=bool(values["sequence"]),
    )


def write_rows(plan: Plan | Entry) -> Iterator[dict[str, object]]:
    """A row `write` for each write of a plan or of a journal entry, secrets redacted."""
    from kctl.rows.changes import WRITE

    stages: Sequence[Stage | RecordedStage] = plan.stages
    for index, stage in enumerate(stages):
        for write in stage.writes:
            before, after = (
                None if data is None else redact(write.target, data).decode("utf-8", "replace")
                for data in (write.before, write.after)
            )
            yield WRITE.of(write, stage=index, intent=str(stage.intent), before=before, after=after)


def change_row(entry: Entry) -> dict[str, object]:
    """The row `change` of a journal entry."""
    from kctl.rows.changes import CHANGE

    return CHANGE.of(entry, finished=entry.is_finished)
