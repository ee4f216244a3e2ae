"""Sends the request of a change, again where no controller took it, and names what is missing where it is refused."""

from __future__ import annotations

import time

from kctl.wire.adapter import NoAnswer, Wire
from kctl.wire.reading import await_controller
from kctl.wire.rights import right_for
from kctl.wire.writes.requests import (
    NOT_CONTROLLER,
    PATIENCE,
    PAUSE,
    REQUEST_TIMED_OUT,
    SENT_AGAIN,
    Request,
    RequestItem,
)

SECONDS_TO_PASS = 10.0  # that are given to an error that passes by itself


def send(wire: Wire, request: Request, *, validate_only: bool = False) -> list[RequestItem]:
    """Send a request to the broker that carries it out; returns the items that failed. Raises NoAnswer, TooOld.

    A request that no controller took is sent again to the one that is elected; one for which a quota is used up, when
    the broker allows; the validation of one, while an error passes by itself.
    """
    start = time.monotonic()
    patience = dict.fromkeys(SENT_AGAIN, PATIENCE)
    if validate_only:
        patience |= dict.fromkeys(request.passing_errors, SECONDS_TO_PASS)
    items = list(request.send(wire, validate_only))
    while (codes := {item.error_code for item in items}) & patience.keys():
        if time.monotonic() - start >= max(patience[code] for code in codes & patience.keys()):
            break
        if NOT_CONTROLLER in codes:
            await_controller(wire)
        else:
            wire.pause(PAUSE)
        items = list(request.send(wire, validate_only))
    late = [item for item in items if item.error_code == REQUEST_TIMED_OUT]
    if late and not validate_only:
        message = late[0].error_message or "the broker did not get to it in time"
        raise NoAnswer(f"{late[0].what}: {message.rstrip('.')}")
    return [_denied(wire, request, item) for item in items if item.error_code]


def _denied(wire: Wire, request: Request, item: RequestItem) -> RequestItem:
    """The item, with the right that is missing where the broker says so."""
    right = right_for(request.name(), item.error_code, request.resource(item))
    return item if right is None else item._replace(right=right, principal=wire.principal)
