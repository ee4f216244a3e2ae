"""Who was controller in which controller epoch, and which requests of a replaced one brokers turned away."""

from __future__ import annotations

from formats.values import Struct, field
from kctl.broker_logs.events import Event
from kctl.times import iso

# Templates whose line says that a broker is controller, and in which epoch (field names; None: not said).
BEGINS = {"E02": "controller_epoch", "E04": "controller_epoch", "E06": "controller_epoch", "E39": "controller_epoch",
          "E40": "controller_epoch", "Q17": "controller_epoch"}  # fmt: skip
RESIGNS = frozenset(("E07", "Q18"))
REJECTIONS = frozenset(("B03", "B04", "B29", "B32", "B34"))
CONTROLLER_LINES = frozenset(
    ("C02", "C03", "C06", "C07", "C13", "C15", "C16", "C01", "C04", "C05", "C14", "C20")
)


class ControllerTerm(Struct):
    """One controller epoch."""

    controller_epoch: int
    broker_id: int | None = None
    from_ms: int = 0
    to_ms: int | None = None
    last_seen_ms: int = 0
    ended: str | None = None
    proofs: list[dict[str, object]] = field(default_factory=list)
    rejections: list[dict[str, object]] = field(default_factory=list)
    cluster: int = 1
    clock_offset_ms: int | None = None

    def row(self) -> dict[str, object]:
        """The row of kind `controller_term`."""
        from kctl.rows.state_log import CONTROLLER_TERM

        return CONTROLLER_TERM(
            broker_id=self.broker_id,
            controller_epoch=self.controller_epoch,
            from_time=iso(self.from_ms),
            to_time=None if self.to_ms is None else iso(self.to_ms),
            ended=self.ended,
            rejections=self.rejections,
            evidence=self.proofs,
            cluster=self.cluster,
            clock_offset_ms=self.clock_offset_ms,
        )


class Terms:
    """Controller terms, from what controllers and brokers print."""

    def __init__(self) -> None:
        self.by_epoch: dict[int, ControllerTerm] = {}
        self._of_broker: dict[int, int] = {}

    def note(self, event: Event, time_ms: int) -> None:
        """Take a line into account."""
        name = event.event or ""
        if name in REJECTIONS:
            self._reject(event, time_ms)
        elif name in BEGINS:
            epoch = event.number(BEGINS[name])
            broker_id = event.number("broker_id")
            if epoch is not None:
                self._see(epoch, broker_id if broker_id is not None else event.broker_id, event, time_ms)
        elif name in RESIGNS and event.broker_id is not None:
            epoch = self._of_broker.pop(event.broker_id, None)
            term = self.by_epoch.get(epoch) if epoch is not None else None
            if term is not None and term.to_ms is None:
                term.to_ms, term.ended = time_ms, "resigned"
                term.proofs.append(event.proof())
        elif name in CONTROLLER_LINES:
            epoch, broker_id = event.number("controller_epoch"), event.number("controller_id")
            if epoch is not None and broker_id is not None:
                self._see(epoch, broker_id, event, time_ms)

    def _see(self, epoch: int, broker_id: int | None, event: Event, time_ms: int) -> None:
        term = self.by_epoch.get(epoch)
        if term is None:
            term = self.by_epoch[epoch] = ControllerTerm(epoch, broker_id, from_ms=time_ms)
            term.proofs.append(event.proof())
        term.broker_id = term.broker_id if term.broker_id is not None else broker_id
        term.last_seen_ms = max(term.last_seen_ms, time_ms)
        if term.broker_id is not None and self._of_broker.get(term.broker_id, -1) <= epoch:
            self._of_broker[term.broker_id] = epoch

    def _reject(self, event: Event, time_ms: int) -> None:
        epoch = event.number("controller_epoch")
        if epoch is None:
            return
        term = self.by_epoch.setdefault(epoch, ControllerTerm(epoch, from_ms=time_ms))
        if term.broker_id is None:
            term.broker_id = event.number("controller_id")
        if len(term.rejections) < 100:
            known = event.number("latest_controller_epoch")
            term.rejections.append({"time": iso(time_ms), "latest_controller_epoch": known, **event.proof()})

    def finished(self, cluster: int) -> list[ControllerTerm]:
        """Terms of a cluster in order; one that nobody ended lasted until the next began."""
        terms = [self.by_epoch[epoch] for epoch in sorted(self.by_epoch)]
        for number, term in enumerate(terms):
            term.cluster = cluster
            following = terms[number + 1] if number + 1 < len(terms) else None
            if following is not None and (term.to_ms is None or term.to_ms > following.from_ms):
                # A controller that resigns after its successor began had been replaced without knowing it.
                late = term.to_ms is not None
                term.to_ms = following.from_ms
                term.ended = "replaced; it resigned only later" if late else "replaced"
        return terms
