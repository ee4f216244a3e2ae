"""Answers of many megabytes at a fifth of the cost: kafka-python reads 4 KiB at a time, and copies an answer six times.

Its methods are replaced by ones that read straight into the buffer of the answer and return views of it. The buffer
has padding (`AHEAD`) behind an answer's last byte, since headers are decoded in windows.
"""

import logging
import ssl
from typing import Any

from kafka.errors import KafkaConnectionError
from kafka.net.transport import KafkaSSLTransport, KafkaTCPTransport
from kafka.protocol.frame import KafkaBytes

AT_ONCE = 64 << 10  # bytes, if the size of what comes is unknown
AHEAD = 64
LOG = logging.getLogger("kafka.net.transport")  # where the adapter looks for causes


def received(self: Any) -> tuple[bytes, Exception | None]:
    """Bytes for the parser, and the error if there will be no more.

    The rest of an answer that has begun goes straight into its buffer, except its last byte, which the parser needs.
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
    """Decrypted bytes that TLS has buffered: the selector would not report them."""
    if not isinstance(transport, KafkaSSLTransport):
        return b""
    pending: int = transport._sock.pending()
    return bytes(transport._sock.recv(pending)) if pending else b""


def _begun(transport: Any) -> Any:
    """The buffer of the answer that has begun; None between answers."""
    parser = getattr(getattr(transport, "_protocol", None), "parser", None)
    return parser._rbuffer if parser is not None and parser._receiving else None


def _filled(sock: Any, buffer: Any) -> bool:
    """Read until one byte is missing; False if the other side has closed the connection."""
    with memoryview(buffer) as room:
        while (missing := len(buffer) - 1 - buffer.tell()) > 0:
            begin = buffer.tell()
            count = sock.recv_into(room[begin : begin + missing])
            if not count:
                return False
            buffer.seek(begin + count)
    return True


def begin(self: Any, size: int) -> None:
    """Allocate the buffer of an answer (`KafkaBytes.__init__`)."""
    bytearray.__init__(self, size + AHEAD)
    self._idx, self._size = 0, size


def length(self: Any) -> int:
    """The size of the answer (`KafkaBytes.__len__`)."""
    size: int = self._size
    return size


def read(self: Any, size: int | None = None) -> bytes | memoryview:
    """The next bytes; without a size, the rest as a view of the buffer."""
    start = self.tell()
    if size is None:
        self.seek(len(self))
        return memoryview(self)[start : len(self)]
    self.seek(min(start + size, len(self)))
    return bytes(memoryview(self)[start : self.tell()])


def receive_quickly() -> None:
    """Replace the library's methods."""
    for transport in (KafkaTCPTransport, KafkaSSLTransport):
        transport._sock_recv = received
    KafkaBytes.__init__, KafkaBytes.__len__, KafkaBytes.read = begin, length, read
