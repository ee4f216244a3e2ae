"""Write a change: read again what the plan was computed from, send each request, check its answer.

What a request expects, and whether it has been carried out, it says itself (`requests.py`), so that a journal entry is
enough. What is here knows no request by its name.
"""

import contextlib
import time
from collections.abc import Sequence

from formats.words import counted
from kctl.changes.faults import reach
from kctl.changes.intents import Several
from kctl.cluster.intent import Intent, Write
from kctl.cluster.state import ClusterState
from kctl.errors import KctlError, NotFinished, without_reassurance
from kctl.wire.adapter import NoAnswer
from kctl.wire.writes.requests import LOOK, Quantifier, Request, RequestItem, WireCluster
from kctl.wire.writes.sending import send
from kctl.wire.writes.table import ASKING_TRANSLATIONS, request_of, requests_of

SETTLING = 5.0  # seconds to find out whether a lost request was carried out
# Seconds that brokers have to apply a throttle; those not in force then are reported after the write.
IN_FORCE = 2.0


def topics_touched(requests: Sequence[Request]) -> set[str] | None:
    """The topics that the requests change; None for all."""
    topics = [request.topics() for request in requests]
    return None if None in topics else set().union(*filter(None, topics))


def writes_for(cluster: WireCluster, intent: Intent, state: ClusterState) -> tuple[Request, ...]:
    """See `kctl.cluster.interface.Cluster`; a single request is validated by the controller where it can be."""
    fresh = cluster.read_state(
        intent.topics_concerned(),
        configs=intent.config_types(),
        log_dirs_of=intent.brokers_of_disks(),
        kafka_version=state.kafka_version,
        recent=True,  # it is read again before anything is sent
    )
    requests = tuple(requests_of(intent, fresh, state, cluster.wire))
    if intent.kind in ASKING_TRANSLATIONS:  # they are made of what brokers answered just now
        return requests
    for request in requests:
        request.refuse_other_answers(cluster.wire)
    # Those of one intent that depend on each other are not valid before the first of them is carried out.
    is_valid = len(requests) == 1 or isinstance(intent, Several)
    for request in requests if is_valid else ():
        for item in send(cluster.wire, request, validate_only=True) if request.is_validated else ():
            error = item.error()
            error.items = (item.refused(request.name()),)
            raise error
    return requests


class WireCommit:
    """Carries out lists of writes on a cluster."""

    def __init__(self, cluster: WireCluster) -> None:
        self._cluster = cluster
        self._wire = cluster.wire
        self._sent = 0  # requests that were answered

    def carry_out(self, writes: Sequence[Write]) -> None:
        """Send the requests in order, after reading again what they expect.

        Raises Conflict if that has changed, Refused if the first of them was refused, NotFinished
        if only a part was done, or that is unknown. After any other error nothing was done.
        """
        requests = [request_of(write) for write in writes]
        state = self._state_of(requests)
        for request in requests:
            request.refuse_other_state(state)
        for request in requests:
            request.refuse_other_answers(self._wire)
        done = 0
        try:
            for number, request in enumerate(requests):
                if request.needs_rates(state):
                    self._await_rates(requests[:number])
                self._send(request, number, len(requests))
                done += 1
            self._settle(requests)
        except KctlError as error:
            if isinstance(error, NotFinished) or not done:
                raise
            words = (
                f"{done} of {counted(len(requests), 'request')} {'was' if done == 1 else 'were'} carried out"
            )
            raise _unfinished(f"{words}: {without_reassurance(error.message)}", LOOK) from error

    def _send(self, request: Request, number: int, count: int) -> None:
        self._cluster.has_written = True
        reach(f"asking:{self._sent + 1}")
        try:
            failed = send(self._wire, request)
        except NoAnswer as lost:
            return self._find_out(request, lost, number, count)
        if failed:
            self._raise_failed(request, failed, number, count)
        self._sent += 1
        reach(f"sent:{self._sent}")

    def _await_rates(self, requests: Sequence[Request]) -> None:
        """Wait until brokers report throttles in force that were written before their moves.

        In KRaft all of these are in one log, except moves between disks, which are requested from the broker. Brokers of
        2.4 do not return rates.
        """
        rates = [request for request in requests if "brokers" in request.config_types()]
        end = time.monotonic() + IN_FORCE
        while rates and time.monotonic() < end:
            state = self._state_of(rates)
            rates = [rate for rate in rates if rate.can_be_told(state) and not rate.is_shown(state)]
            if rates:
                time.sleep(0.02)

    def _raise_failed(self, request: Request, failed: Sequence[RequestItem], number: int, count: int) -> None:
        """Raise the error of a request that was refused, or NotFinished where a part was carried out."""
        items = request.item_count
        refused = tuple(item.refused(request.name()) for item in failed)
        if number == 0 and len(failed) >= items:
            more = f"; so {len(failed) - 1} more" if len(failed) > 1 else ""
            error = failed[0].error(f"nothing was written{more}")
            error.items = refused
            raise error
        reasons = "; ".join(item.reason for item in failed[:5])
        more = f" and {len(failed) - 5} more" if len(failed) > 5 else ""
        done = f"{number} of {counted(count, 'request')} and {items - len(failed)} of {items} items of the next were carried out"
        unfinished = _unfinished(f"{done}, not: {reasons}{more}", LOOK)
        unfinished.items = refused
        raise unfinished

    def _find_out(self, request: Request, lost: NoAnswer, number: int, count: int) -> None:
        """Find out whether a request without an answer was carried out. Raises NotFinished if that is not visible."""
        end = time.monotonic() + SETTLING
        seen, is_begun = "what of the next was is not known", False
        while True:
            with contextlib.suppress(KctlError):
                if request.is_done(self._wire, self._state_of([request])):
                    return
                is_begun = self.is_begun([request])
                part = "only a part" if is_begun else "nothing"
                seen = f"of the next {part} is to be seen, and it may still be carried out"
            if time.monotonic() > end:
                break
            time.sleep(0.2)
        unfinished = NotFinished(
            f"{lost}; {number} of {counted(count, 'request')} were carried out, {seen}", LOOK
        )
        unfinished.is_begun = number > 0 or is_begun
        raise unfinished

    def _settle(self, requests: Sequence[Request]) -> None:
        """Wait until the cluster shows what it has acknowledged. Raises NotFinished if a move is not visible.

        In KRaft a read waits for the metadata, but a broker reports its metadata offset a moment before its answers
        reflect it.
        """
        if not requests:
            return
        end = time.monotonic() + SETTLING
        lasting = _lasting(requests)
        while True:
            state = self._state_of(requests)
            if all(one.is_done(self._wire, state) or not one.shows_at_once(state) for one in lasting):
                return
            if time.monotonic() > end:
                break
            time.sleep(0.05)
        for request in lasting:
            if request.is_to_be_seen and not request.is_done(self._wire, state):
                raise _unfinished(
                    "it was acknowledged, but is not to be seen: not yet, or somebody else has changed it",
                    request.how_to_look,
                )

    def _state_of(self, requests: Sequence[Request]) -> ClusterState:
        return self._cluster.read_state(
            topics_touched(requests),
            configs={kind for request in requests for kind in request.config_types()},
            log_dirs_of={broker for request in requests for broker in request.brokers_of_disks()},
        )

    def is_written(self, writes: Sequence[Write]) -> bool:
        """Whether the cluster shows that earlier requests have been carried out."""
        return self._shows(writes, all)

    def is_begun(self, writes: Sequence[Write]) -> bool:
        """Whether the cluster shows that any item of earlier requests has been carried out."""
        return self._shows(writes, any)

    def _shows(self, writes: Sequence[Write], of: Quantifier) -> bool:
        requests = [request_of(write) for write in writes]
        state = self._state_of(requests)
        return of(one.can_be_told(state) and one.is_done(self._wire, state, of) for one in requests)


def _unfinished(message: str, hint: str) -> NotFinished:
    """The error of a change of which a part is carried out."""
    error = NotFinished(message, hint)
    error.is_begun = True
    return error


def _lasting(requests: Sequence[Request]) -> list[Request]:
    """Those that stay visible: the last of several about the same partitions (cancel, then the order)."""
    moves = [request for request in requests if request.replaces_earlier]
    return [request for request in requests if request not in moves[:-1]]
