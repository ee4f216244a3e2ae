"""Which brokers a broker names: right after a start it may not know of others, nor others of it."""

from __future__ import annotations

import socket
import struct

# Metadata, version 1 (0.10 and later), correlation id 0, no client id, no topics.
QUESTION = struct.pack(">hhihi", 3, 1, 0, -1, 0)


def named_brokers(host: str, port: int) -> set[int] | None:
    """The ids of the brokers that one names; None where nothing at its port answers that question."""
    try:
        with socket.create_connection((host, port), timeout=2) as connection:
            connection.sendall(struct.pack(">i", len(QUESTION)) + QUESTION)
            with connection.makefile("rb") as stream:
                (size,) = struct.unpack(">i", stream.read(4))
                answer = stream.read(min(size, 1 << 20))
        return set(_ids(answer))
    except (OSError, struct.error):
        return None


def _ids(answer: bytes) -> list[int]:
    (count,) = struct.unpack_from(">i", answer, 4)
    ids, place = [], 8
    for _ in range(count):
        (id,) = struct.unpack_from(">i", answer, place)
        ids.append(id)
        place = _behind_text(answer, _behind_text(answer, place + 4) + 4)  # host, port, rack
    return ids


def _behind_text(answer: bytes, place: int) -> int:
    (length,) = struct.unpack_from(">h", answer, place)
    return place + 2 + max(length, 0)
