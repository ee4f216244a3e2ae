"""Answers of many megabytes at a fifth of the cost: kafka-python reads 4 KiB at a time, and copies an answer six times.

Methods of it are replaced by ones that read what there is, straight to where the answer is put together, and hand it
on without copying it. Behind an answer's last byte some more may be read (`AHEAD`): headers are looked at in windows.
"""

import logging
import ssl
from typing import Any

from kafka.errors import KafkaConnectionError
from kafka.net.transport import KafkaSSLTransport, KafkaTCPTransport
from kafka.protocol.frame import KafkaBytes

AT_ONCE = 64 << 10  # bytes, where it is not known what will come
AHEAD = 64
LOG = logging.getLogger("kafka.net.transport")  # where the adapter looks for causes


def received(self: Any) -> tuple[bytes, Exception | None]:
    """Bytes for the parser, and why there will be no more, if so.

    What belongs to an answer that has begun is put there, but for its last byte: with that one the parser goes on.
    """
    failure: Exception | None = None
    try:
        buffer = _begun(self)
        is_whole = buffer is None or _filled(self._sock, buffer)
        if is_whole and (part := self._sock.recv(AT_ONCE)):
            return part + _decrypted(self), None
        failure = KafkaConnectionError("socket disconnected")
        LOG.error("%s: socket disconnected", self)
    except (BlockingIOError, InterruptedError):
        pass
    except OSError as error:
        if isinstance(error, (ssl.SSLWantReadError, ssl.SSLWantWriteError)):
            return b"", None
        failure = KafkaConnectionError(error)
        LOG.error("%s: no bytes can be received: %s", self, error)
    return b"", failure


def _decrypted(transport: Any) -> bytes:
    """What TLS holds of a record beyond what was read: nothing would say that there is more."""
    if not isinstance(transport, KafkaSSLTransport):
        return b""
    pending: int = transport._sock.pending()
    return bytes(transport._sock.recv(pending)) if pending else b""


def _begun(transport: Any) -> Any:
    """Where the answer is put together that has begun; None between answers."""
    parser = getattr(getattr(transport, "_protocol", None), "parser", None)
    return parser._rbuffer if parser is not None and parser._receiving else None


def _filled(sock: Any, buffer: Any) -> bool:
    """Read until one byte is missing; False where the other side has ended the connection before."""
    with memoryview(buffer) as room:
        while (left := len(buffer) - 1 - buffer.tell()) > 0:
            begin = buffer.tell()
            count = sock.recv_into(room[begin : begin + left])
            if not count:
                return False
            buffer.seek(begin + count)
    return True


def begin(self: Any, size: int) -> None:
    """Room for an answer."""
    bytearray.__init__(self, size + AHEAD)
    self._idx, self._size = 0, size


def length(self: Any) -> int:
    """How long the answer is."""
    size: int = self._size
    return size


def read(self: Any, size: int | None = None) -> bytes | memoryview:
    """The next bytes; all that are left as a view of the buffer, which belongs to this answer alone."""
    start = self.tell()
    if size is None:
        self.seek(len(self))
        return memoryview(self)[start : len(self)]
    self.seek(min(start + size, len(self)))
    return bytes(memoryview(self)[start : self.tell()])


def receive_quickly() -> None:
    """Put the methods in place of the library's."""
    for transport in (KafkaTCPTransport, KafkaSSLTransport):
        transport._sock_recv = received
    KafkaBytes.__init__, KafkaBytes.__len__, KafkaBytes.read = begin, length, read
