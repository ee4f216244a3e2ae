"""Read many znodes in few round trips: with multiRead if the server has it, otherwise with pipelined reads.

multiRead (opcode 22, ZOOKEEPER-3402, servers from 3.6 on) is not in kazoo; it is sent over kazoo's own
session, so that authentication, TLS and chroot stay kazoo's. An older server answers it by closing the
connection, so it is only sent to a server of a known version, or one that has answered it on another session.
"""

import struct
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

from kazoo.exceptions import EXCEPTIONS, NoAuthError, NoNodeError

from kctl.zookeeper.store import Acl, Stat, Znode

GET_DATA, GET_ACL, GET_CHILDREN = 4, 6, 8
HEADER = struct.Struct(">i?i")
INTEGER = struct.Struct(">i")
STAT = struct.Struct(">qqqqiiiqiiq")
NO_NODE = NoNodeError.code
PATHS_A_CALL = 200
CALLS_IN_FLIGHT = 8
READS_IN_FLIGHT = 1000
END = HEADER.pack(-1, True, -1)


class MultiRead:
    """One multiRead request, as kazoo sends it. Its answer is a list: a value, or None for a missing znode."""

    type: ClassVar[int] = 22

    def __init__(self, operation: int, paths: Sequence[str]) -> None:
        self.operation = operation
        self.paths = paths

    def serialize(self) -> bytes:
        """The body of the request."""
        header = HEADER.pack(self.operation, False, -1)
        parts = []
        for path in self.paths:
            encoded = path.encode()
            parts += [header, INTEGER.pack(len(encoded)), encoded, b"\0"]
        return b"".join([*parts, END])

    def deserialize(self, data: bytes, offset: int) -> list[Any]:
        """The answers, in order."""
        results: list[Any] = []
        size = HEADER.size
        while True:
            kind, done, error = HEADER.unpack_from(data, offset)
            offset += size
            if done:
                return results
            if kind == GET_DATA:
                (length,) = INTEGER.unpack_from(data, offset)
                offset += 4
                content = bytes(data[offset : offset + length]) if length > 0 else b""
                offset += max(length, 0)
                results.append(Znode(content, Stat._make(STAT.unpack_from(data, offset))))
                offset += STAT.size
            elif kind == GET_CHILDREN:
                names, offset = read_names(data, offset)
                results.append(names)
            else:
                (error,) = INTEGER.unpack_from(data, offset)
                offset += 4
                results.append(None if error == NO_NODE else EXCEPTIONS[error]())


class ReadRequest:
    """One getData, getACL or getChildren, decoded without kazoo's own values, which cost more than the read."""

    def __init__(self, operation: int, path: str) -> None:
        self.type = operation
        self.path = path

    def serialize(self) -> bytes:
        """The body of the request; all but getACL end in whether to watch."""
        encoded = self.path.encode()
        return INTEGER.pack(len(encoded)) + encoded + (b"" if self.type == GET_ACL else b"\0")

    def deserialize(self, data: bytes, offset: int) -> Any:
        """A znode, its access list, or the names below it."""
        if self.type == GET_CHILDREN:
            return read_names(data, offset)[0]
        if self.type == GET_ACL:
            return read_acl(data, offset)
        (length,) = INTEGER.unpack_from(data, offset)
        end = offset + 4 + max(length, 0)
        return Znode(bytes(data[offset + 4 : end]), Stat._make(STAT.unpack_from(data, end)))


def read_names(data: bytes, offset: int) -> tuple[list[str], int]:
    """A vector of strings, sorted, and where it ends."""
    (count,) = INTEGER.unpack_from(data, offset)
    offset += 4
    names = []
    for _ in range(max(count, 0)):
        name, offset = _text(data, offset)
        names.append(name)
    names.sort()
    return names, offset


def read_acl(data: bytes, offset: int) -> list[Acl]:
    """An access list."""
    (count,) = INTEGER.unpack_from(data, offset)
    offset += 4
    entries = []
    for _ in range(max(count, 0)):
        (permissions,) = INTEGER.unpack_from(data, offset)
        scheme, offset = _text(data, offset + 4)
        id, offset = _text(data, offset)
        entries.append(Acl(permissions, scheme, id))
    return entries


def _text(data: bytes, offset: int) -> tuple[str, int]:
    (length,) = INTEGER.unpack_from(data, offset)
    end = offset + 4 + max(length, 0)
    return bytes(data[offset + 4 : end]).decode("utf-8", "surrogateescape"), end


class PendingAnswers:
    """The answers of requests in flight, in order; kazoo's thread puts them here.

    The waiting thread is woken once for many answers: a switch of threads costs more than a read.
    """

    def __init__(self, count: int) -> None:
        self.values: list[Any] = [None] * count
        self.error: BaseException | None = None
        self._arrived = 0  # written by kazoo's thread alone
        self._awaited = count
        self._enough = threading.Event()

    def put(self, index: int, value: Any) -> None:
        """Store an answer."""
        self.values[index] = value
        self._arrived += 1
        if self._arrived >= self._awaited:
            self._enough.set()

    def fail(self, error: BaseException) -> None:
        """Fail all requests."""
        self.error = self.error or error
        self._enough.set()

    def wait_for(self, count: int, timeout: float) -> None:
        """Wait until `count` answers have arrived. Raises the exception of kazoo, or TimeoutError."""
        # The order counts: an answer after the comparison sees the new number and wakes this thread.
        self._awaited = count
        self._enough.clear()
        end = time.monotonic() + timeout
        while self._arrived < count and self.error is None:
            if not self._enough.wait(max(end - time.monotonic(), 0)):
                break
            # Perhaps woken late for the number awaited before: then more answers come.
            self._enough.clear()
        if self.error is not None:
            raise self.error
        if self._arrived < count:
            raise TimeoutError


class Slot:
    """The place of one answer, with the methods that kazoo needs of an asynchronous result."""

    __slots__ = ("answers", "index")

    def __init__(self, answers: PendingAnswers, index: int) -> None:
        self.answers = answers
        self.index = index

    def set(self, value: Any = None) -> None:
        """kazoo has the answer."""
        self.answers.put(self.index, value)

    def set_exception(self, error: BaseException) -> None:
        """kazoo has an error: a missing znode is an answer, and a hidden one; everything else fails the whole."""
        if isinstance(error, NoNodeError):
            self.answers.put(self.index, None)
        elif isinstance(error, NoAuthError):
            self.answers.put(self.index, error)
        else:
            self.answers.fail(error)


def send_all(
    call: Callable[[Any, Any], Any], requests: Sequence[Any], window: int, timeout: float
) -> list[Any]:
    """Send requests with at most `window` unanswered, and give the answers in order.

    `timeout` is for each answer. Raises the exception of kazoo, or TimeoutError.
    """
    answers = PendingAnswers(len(requests))
    for index, request in enumerate(requests):
        if index >= window and index % (window // 2) == 0:
            answers.wait_for(index - window // 2, timeout)
        call(request, Slot(answers, index))
    answers.wait_for(len(requests), timeout)
    return answers.values


def multi_read(
    call: Callable[[Any, Any], Any], operation: int, paths: Sequence[str], timeout: float
) -> list[Any]:
    """Many znodes by multiRead: None for a missing one, NoAuthError for a hidden one. Raises other errors of the server."""
    chunks = [paths[at : at + PATHS_A_CALL] for at in range(0, len(paths), PATHS_A_CALL)]
    answers = send_all(call, [MultiRead(operation, chunk) for chunk in chunks], CALLS_IN_FLIGHT, timeout)
    values = [value for answer in answers for value in answer]
    for value in values:
        if isinstance(value, Exception) and not isinstance(value, NoAuthError):
            raise value
    return values


def pipelined(
    call: Callable[[Any, Any], Any], operation: int, paths: Sequence[str], timeout: float
) -> list[Any]:
    """Many znodes by ordinary reads, many in flight: None for a missing one, NoAuthError for a hidden one."""
    return send_all(call, [ReadRequest(operation, path) for path in paths], READS_IN_FLIGHT, timeout)
