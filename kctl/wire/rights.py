"""Which right is missing where a broker refuses a request, and for whom."""

from kctl.cluster.requests import REQUESTS
from kctl.cluster.rights import CLUSTER, RESOURCES, MissingRight, Right, missing
from kctl.cluster.state import Problem
from kctl.errors import KctlError
from kctl.wire.adapter import BrokerError, Wire, error_name


def right_for(request: str, code: int, name: str = "") -> Right | None:
    """The right that a request lacks by the error of its answer; None if the error is another one.

    `name` is that of the topic, group or transactional id.
    """
    if (resource := RESOURCES.get(code)) is None:
        return None
    if (kind := REQUESTS.get(request)) is None or not kind.operation:
        return None
    operation = kind.operations.get(resource, kind.operation)
    return Right(operation, resource, "" if resource == CLUSTER else name)


def failure(
    wire: Wire, place: str, request: str, code: int, name: str = "", message: str | None = ""
) -> KctlError:
    """The error of an answer: the missing right, or the broker's own words about a place."""
    if (right := right_for(request, code, name)) is not None:
        return MissingRight(right, wire.principal, place)
    return BrokerError(f"{place}: {(message or '').rstrip('.') or error_name(code)}")


def problem(wire: Wire, place: str, request: str, code: int, name: str = "") -> Problem:
    """The same for a part of a state that was not read."""
    if (right := right_for(request, code, name)) is not None:
        return denied(wire, place, right)
    return Problem(place, error_name(code))


def denied(wire: Wire, place: str, right: Right) -> Problem:
    """A part of a state that this user may not read."""
    return Problem(place, missing(right, wire.principal), right=right, principal=wire.principal)
