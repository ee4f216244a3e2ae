"""Expected failures. Each carries its exit status and, where there is something to do, a hint.

Texts are lower-case, name the thing, quote the value and end without a full stop.
"""

from typing import NamedTuple


class RefusedItem(NamedTuple):
    """One item of a request that a broker did not carry out; `reason` is the broker's own sentence."""

    request: str  # Kafka's name of it
    what: str  # `orders-3`, `topic orders`
    error_code: int
    error: str  # Kafka's name of the code
    reason: str | None = None
    topic: str | None = None
    partition: int | None = None


class KctlError(Exception):
    """Could not: a file, a znode, a connection (exit status 3)."""

    exit_code = 3
    hint = ""
    items: tuple[RefusedItem, ...] = ()  # where brokers answered item by item: those that failed

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message, hint)
        self.message = message
        if hint:
            self.hint = hint

    def __str__(self) -> str:
        return f"{self.message}; {self.hint}" if self.hint else self.message


class Refused(KctlError):
    """Would not: a precondition of a change does not hold (exit status 4). Nothing was written."""

    exit_code = 4


class BadValue(KctlError):
    """A name or value that cannot be right, found only after the arguments were parsed (exit status 2)."""

    exit_code = 2


class NotFinished(KctlError):
    """Written, but not finished within the time given (exit status 5)."""

    exit_code = 5


class UnreadableFile(KctlError):
    """A file or folder that cannot be opened or has not the layout asked for."""


def reason_of(error: BaseException) -> str:
    """The system's words for an error as a clause, `permission denied`; an error's own text where it has none."""
    said = getattr(error, "strerror", None)
    return str(said).lower() if said else str(error)
