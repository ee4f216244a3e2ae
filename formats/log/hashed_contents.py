"""Log bytes whose keys, values and values of headers are replaced by as many bytes of a keyed hash.

Everything else stays: offsets, timestamps, sequences, producers, epochs, attributes, the codec, nulls, names of headers,
control batches. Equal contents stay equal, different ones different. A compressed entry is compressed anew and so has
another size; a checksum that was right is right again, one that was wrong stays wrong. Bytes that are no records, as
those of damage, become as many other bytes.
"""

from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from hashlib import blake2b, shake_256
from re import compile as pattern

from formats.binary.crc import crc32, crc32c
from formats.binary.layout import Bytes, read, write
from formats.binary.varint import read_varint, read_varlong
from formats.compression import decompress
from formats.compression.writers import compress
from formats.errors import FormatError
from formats.log.framing import FRAMING_SIZE, Framing
from formats.log.log_bytes import WINDOW, LogBytes
from formats.log.message_set import CRC_STARTS_AT as MESSAGE_CRC_STARTS_AT
from formats.log.message_set import MIN_SIZES, TIMESTAMP_AT, MessageHeader
from formats.log.record_batch import CRC_STARTS_AT, HEADER_SIZE, LOG_OVERHEAD, MAGIC_AT, BatchHeader
from formats.log.records import (
    DEFAULT_LIMIT,
    LARGEST_COMPRESSED,
    MAGICS,
    MIN_LENGTHS,
    NEARBY,
    Damage,
    DamageReason,
    LogEntry,
    iterate_records,
)

PERMUTED = 8
"""Contents shorter than this are permuted, so that different ones stay different; of longer ones the hash is enough."""
ROUNDS = 10
DIGEST = 16
CONTROL_KEY_SIZE = 4
UNUSED_ATTRIBUTES = 0xFF80
"""Bits of the attributes of a batch that have no meaning."""
UNUSED_OLD_ATTRIBUTES = 0xF0
LONGEST = 1 << 28
"""No entry of a log is as long, and none has so many offsets: four bytes of a text are more."""
FAR = 1 << 20
"""Offsets that are further from the last one may be bytes of a text."""
LATEST = 1 << 45
"""Milliseconds until the year 3084; eight bytes of a text are more, and no cluster gives as many producer ids."""
UNREADABLE_LENGTH = bytes((0x7F, 0xFF, 0xFF, 0xFF))
FIELDS_AT = CRC_STARTS_AT + 2
"""Behind the attributes, which say how a batch is compressed."""
ZEROED = pattern(rb"\0{512,}")
"""Runs of zeros, as a disk leaves them, stay in the midst of damage: they hold nothing."""


class ContentHash:
    """What takes the place of contents; the same for the same key."""

    def __init__(self, key: bytes) -> None:
        self._key = blake2b(key, digest_size=32).digest()
        self._permuted = lru_cache(1 << 14)(self._permutation)

    @property
    def key_id(self) -> str:
        """A name of the key that does not tell it."""
        return blake2b(b"id", key=self._key, digest_size=8, person=b"kctl key id").hexdigest()

    def of_digest(self, sha256: str) -> str:
        """A digest of a file that says nothing to those who lack the key: of its SHA-256 in hexadecimal digits."""
        return blake2b(sha256.encode(), key=self._key, digest_size=32, person=b"kctl source").hexdigest()

    def replaced(self, content: bytes) -> bytes:
        """As many bytes that stand for these."""
        size = len(content)
        if size < PERMUTED:
            return self._permuted(content)
        digest = blake2b(content, key=self._key, digest_size=DIGEST).digest()
        return (digest * (size // DIGEST + 1))[:size]

    def replaced_text(self, text: str) -> str:
        """Hexadecimal digits that take as many bytes of UTF-8 as the text."""
        size = len(raw := text.encode("utf-8", "surrogatepass"))
        return (blake2b(raw, key=self._key, digest_size=DIGEST).hexdigest() * (size // DIGEST + 1))[:size]

    def noise(self, data: Bytes) -> bytes:
        """As many bytes without any form; long runs of zeros stay."""
        raw = bytes(data)
        noise = bytearray(shake_256(self._key + raw).digest(len(raw)))
        for zeros in ZEROED.finditer(raw):
            noise[zeros.start() : zeros.end()] = zeros[0]
        return bytes(noise)

    def _permutation(self, content: bytes) -> bytes:
        """A Feistel network over the bits of a short content: one to one."""
        size = len(content)
        half = 4 * size
        mask = (1 << half) - 1
        left, right = divmod(int.from_bytes(content, "big"), 1 << half)
        for number in range(ROUNDS):
            word = blake2b(right.to_bytes(4, "big"), key=self._key, salt=bytes((size, number)), digest_size=4)
            left, right = right, left ^ int.from_bytes(word.digest(), "big") & mask
        return (left << half | right).to_bytes(size, "big")


class Contents:
    """How the contents of a topic's records are replaced: each by its hash."""

    def __init__(self, content_hash: ContentHash) -> None:
        self.hash = content_hash

    def of_record(self, key: bytes | None, value: bytes | None) -> tuple[bytes | None, bytes | None]:
        """What takes the place of a key and a value, each of the same size; nulls stay."""
        hashed = self.hash.replaced
        return None if key is None else hashed(key), None if value is None else hashed(value)

    def of_header(self, name: bytes, value: bytes) -> bytes:
        """What takes the place of the value of a header."""
        return self.hash.replaced(value)


def hashed_entry(entry: LogEntry, contents: Contents) -> bytes:
    """The bytes of an entry without its contents."""
    data = bytearray(entry.data)
    if entry.batch is not None:
        if entry.batch.is_control and _is_control(entry):
            return bytes(data)
        return _batch(data, entry.batch, contents, is_sure=entry.crc_valid)
    return bytes(_message(data, contents, is_inner=False))


def hashed_damage(damage: Damage, log: LogBytes, last_offset: int, contents: Contents) -> Iterator[bytes]:
    """As many bytes as damage has, in pieces, by which it is the same damage; `last_offset` is that before it.

    The header of an entry stays where its offset may follow the last one.
    """
    position, end = damage.position, damage.position + damage.size_in_bytes
    if damage.reason is not DamageReason.ZEROS:
        head = bytes(log.peek(position, HEADER_SIZE))
        if damage.reason is DamageReason.ILLEGAL_MAGIC and head[MAGIC_AT] in MAGICS:
            size = read(BatchHeader, head).size_in_bytes
            if size <= damage.size_in_bytes:
                yield _of_other_magic(log.read(position, size), contents.hash)
                position, head = position + size, b""
        head = _head(head, log.end - position, last_offset, contents.hash)[: damage.size_in_bytes]
        yield head
        position += len(head)
    for start in range(position, end, WINDOW):
        piece = log.read(start, min(WINDOW, end - start))
        yield bytes(piece) if damage.reason is DamageReason.ZEROS else contents.hash.noise(piece)


def _of_other_magic(data: Bytes, content_hash: ContentHash) -> bytes:
    """A batch of magic 2 that says it is of another magic: by its checksum, which does not cover that byte, it is known."""
    header = read(BatchHeader, data)
    body = content_hash.noise(data[HEADER_SIZE:])
    return write(header._replace(crc=crc32c(write(header)[CRC_STARTS_AT:] + body))) + body


def _head(head: bytes, bytes_left: int, last_offset: int, content_hash: ContentHash) -> bytes:
    """The beginning of damage: the header of an entry, zeros, or what is damage of the same kind."""
    if len(head) < FRAMING_SIZE:
        return b""
    framing = read(Framing, head)
    if head.startswith(bytes(FRAMING_SIZE)):
        return head[:FRAMING_SIZE]
    is_legal, is_near = framing.magic in MAGICS, 0 < framing.offset - last_offset < NEARBY
    is_told = 0 <= framing.length < LONGEST
    if is_near and is_legal and is_told:
        return head[: _kept_of_header(head, framing.magic)]
    # Contents may stand where a header was to be: of their bytes none stays but a length that may be one.
    noise = bytearray(content_hash.noise(head[:FRAMING_SIZE]))
    noise[MAGIC_AT] = framing.magic if is_legal else noise[MAGIC_AT] | 0x40
    if is_near:
        is_next = framing.offset - last_offset < FAR
        noise[:8] = head[:8] if is_next else (last_offset + 1).to_bytes(8, "big", signed=True)
        untold = UNREADABLE_LENGTH if framing.length > 0 else bytes(4)
        noise[8:LOG_OVERHEAD] = head[8:LOG_OVERHEAD] if is_told else untold
    elif is_legal:
        fits = MIN_LENGTHS[framing.magic] <= framing.length <= bytes_left - LOG_OVERHEAD
        noise[8:LOG_OVERHEAD] = head[8:LOG_OVERHEAD] if fits else bytes(4)
    return bytes(noise)


def _kept_of_header(head: bytes, magic: int) -> int:
    """How many bytes of the header of an entry stay: behind the framing may be contents."""
    if magic < 2:
        is_plausible = not any(byte & UNUSED_OLD_ATTRIBUTES for byte in head[TIMESTAMP_AT - 1 : TIMESTAMP_AT])
        if magic == 1 and not _is_time(
            int.from_bytes(head[TIMESTAMP_AT : TIMESTAMP_AT + 8], "big", signed=True)
        ):
            is_plausible = False
        return TIMESTAMP_AT + 8 * magic if is_plausible else FRAMING_SIZE
    is_whole = len(head) >= HEADER_SIZE
    return HEADER_SIZE if is_whole and _is_plausible(read(BatchHeader, head)) else FRAMING_SIZE


# --- magic 2 ------------------------------------------------------------------------------------------


def _is_control(entry: LogEntry) -> bool:
    """Whether a batch that says it is one of control records has these alone, and a right checksum."""
    if not entry.crc_valid:
        return False
    try:
        records = list(iterate_records(entry))
    except FormatError:
        return False
    has_none = len(entry.data) == HEADER_SIZE
    return all(len(r.key or b"") == CONTROL_KEY_SIZE and not r.headers for r in records) and (
        bool(records) or has_none
    )


def _is_plausible(header: BatchHeader) -> bool:
    """Whether the fields behind the framing may be those of a header, and not contents that stand in its place."""
    return (
        header.attributes & UNUSED_ATTRIBUTES == 0
        and 0 <= header.last_offset_delta < LONGEST
        and 0 <= header.records_count <= header.last_offset_delta + 1
        and _is_time(header.base_timestamp)
        and _is_time(header.max_timestamp)
        and -1 <= header.producer_id < LATEST
    )


def _is_time(timestamp: int) -> bool:
    """Whether it may be a time of this epoch, or none: bytes of a text are none."""
    return -1 <= timestamp < LATEST


def _batch(data: bytearray, header: BatchHeader, contents: Contents, *, is_sure: bool) -> bytes:
    """A batch; `is_sure`: its checksum is right, so that its header is one."""
    body = bytes(data[HEADER_SIZE:])
    hashed = _body(body, header, contents)
    before = crc32c(bytes(data[CRC_STARTS_AT:]))
    sized = write(header._replace(batch_length=HEADER_SIZE - LOG_OVERHEAD + len(hashed)))
    if not is_sure and not _is_plausible(header):
        noise = sized[:FIELDS_AT] + contents.hash.noise(sized[FIELDS_AT:])
        sized = write(read(BatchHeader, noise)._replace(records_count=-1))
    after = crc32c(sized[CRC_STARTS_AT:] + hashed)
    framed = read(BatchHeader, sized)._replace(crc=header.crc ^ before ^ after)
    return write(framed) + hashed


def _body(body: bytes, header: BatchHeader, contents: Contents) -> bytes:
    """The records of a batch, compressed as they were; those that cannot be read as noise."""
    plain = bytearray(body)
    if header.codec:
        if len(body) > LARGEST_COMPRESSED:
            return contents.hash.noise(body)
        try:
            plain = bytearray(decompress(header.codec, body, magic=2, limit=DEFAULT_LIMIT))
        except FormatError:
            return contents.hash.noise(body)
    _replace_all(plain, range(header.records_count), _replace_in_record, contents)
    return compress(header.codec, plain, magic=2) if header.codec else bytes(plain)


Replace = Callable[[bytearray, int, Contents], int]
Place = tuple[int, int] | None
"""Where the bytes of a field stand; None for null."""


class _Unreadable(Exception):
    """From a position on nothing can be told apart."""

    def __init__(self, position: int) -> None:
        super().__init__(position)
        self.position = position


def _replace_all(data: bytearray, numbers: range, replace: Replace, contents: Contents) -> None:
    """Replace the contents of records one after the other; behind the last, or one that is none, all is noise."""
    position = 0
    try:
        for _ in numbers:
            if position >= len(data):
                break
            position = replace(data, position, contents)
    except _Unreadable as unreadable:
        position = unreadable.position
    data[position:] = contents.hash.noise(data[position:])


def _replace_in_record(data: bytearray, position: int, contents: Contents) -> int:
    """Replace key, value and values of headers in place; where the next record starts. Raises _Unreadable."""
    at = position
    fields: list[Place] = []
    headers: list[tuple[bytes, int, int]] = []
    is_whole = False
    behind_value: int | None = None
    try:
        size, at = read_varint(data, at)
        start, end = at, at + size
        if size < 0 or end > len(data):
            raise _Unreadable(start)
        _, at = read_varlong(data, at + 1)
        _, at = read_varint(data, at)
        for _ in ("key", "value"):
            field, at = _field(data, at, end)
            fields.append(field)
        behind_value = at
        count, at = read_varint(data, at)
        for _ in range(min(count, end - at)):
            named, at = _field(data, at, end)
            if named is None:
                raise _Unreadable(at)
            field, at = _field(data, at, end)
            if field is not None:
                headers.append((bytes(data[slice(*named)]), *field))
        is_whole = at == end
    except _Unreadable as unreadable:
        at = unreadable.position
    except FormatError:
        pass
    _put(data, (*fields, None, None)[:2], contents)
    for name, first, behind in headers:
        data[first:behind] = contents.of_header(name, bytes(data[first:behind]))
    if not is_whole:
        # If the length of the value is damaged, its bytes may have been taken for names of headers.
        raise _Unreadable(at if behind_value is None else behind_value)
    return at


def _field(data: bytearray, position: int, end: int) -> tuple[Place, int]:
    """Where a field stands, None for null, and what follows it. Raises _Unreadable behind a length that lies."""
    size, start = read_varint(data, position)
    if size < 0:
        return None, start
    if start + size > end:
        raise _Unreadable(start)
    return (start, start + size), start + size


def _put(data: bytearray, fields: Sequence[Place], contents: Contents) -> None:
    """Replace a key and a value in place."""
    key, value = (None if field is None else bytes(data[slice(*field)]) for field in fields)
    for field, content in zip(fields, contents.of_record(key, value), strict=True):
        if field is not None and content is not None:
            data[slice(*field)] = content


# --- magic 0 and 1 ------------------------------------------------------------------------------------


def _message(data: bytearray, contents: Contents, *, is_inner: bool) -> bytearray:
    """A whole message, its checksum as right or as wrong as it was; one in a compressed set is not compressed itself."""
    header = read(MessageHeader, data)
    before = crc32(bytes(data[MESSAGE_CRC_STARTS_AT:]))
    try:
        fields, end = _old_fields(data, header.fields_at)
        if header.codec:
            data = _with_set(data, fields[1], header, contents, is_inner=is_inner)
        else:
            _put(data, fields, contents)
            data[end:] = contents.hash.noise(data[end:])
    except _Unreadable as unreadable:
        start = header.fields_at
        data[start:] = contents.hash.noise(data[start:])
        if unreadable.position > start + 4 <= len(data):  # none of the noise is to be taken for a field
            data[start : start + 4] = UNREADABLE_LENGTH
    header = header._replace(message_size=len(data) - LOG_OVERHEAD)
    after = crc32(bytes(data[MESSAGE_CRC_STARTS_AT:]))
    data[:TIMESTAMP_AT] = write(header._replace(crc=header.crc ^ before ^ after))
    return data


def _old_fields(data: bytearray, at: int) -> tuple[tuple[Place, Place], int]:
    """Where the key and the value of a message stand, and what follows them. Raises _Unreadable."""
    fields: list[Place] = []
    for _ in ("key", "value"):
        if at + 4 > len(data):
            raise _Unreadable(min(at, len(data)))
        size = int.from_bytes(data[at : at + 4], "big", signed=True)
        at += 4
        if at + size > len(data):
            raise _Unreadable(at)
        fields.append((at, at + size) if size >= 0 else None)
        at += max(size, 0)
    return (fields[0], fields[1]), at


def _with_set(
    data: bytearray, value: Place, header: MessageHeader, contents: Contents, *, is_inner: bool
) -> bytearray:
    """A wrapper with the contents of its messages replaced. Raises _Unreadable."""
    if value is None:
        raise _Unreadable(header.fields_at)
    start, end = value
    try:
        if is_inner:
            raise FormatError("a message of a set is not compressed", start)
        plain = bytearray(
            decompress(header.codec, bytes(data[start:end]), magic=header.magic, limit=DEFAULT_LIMIT)
        )
        _replace_all(plain, range(len(plain)), _replace_in_set, contents)
        packed = compress(header.codec, plain, magic=header.magic)
    except FormatError:
        packed = contents.hash.noise(data[start:end])
    if start - 4 > header.fields_at + 4:  # a key, which no wrapper has
        data[header.fields_at + 4 : start - 4] = contents.hash.noise(data[header.fields_at + 4 : start - 4])
    rest = contents.hash.noise(data[end:])
    return data[: start - 4] + len(packed).to_bytes(4, "big") + packed + rest


def _replace_in_set(data: bytearray, position: int, contents: Contents) -> int:
    """Replace the contents of a message of a set; where the next starts. Raises _Unreadable."""
    start = position + LOG_OVERHEAD
    end = start + int.from_bytes(data[position + 8 : start], "big", signed=True)
    if end < start + MIN_SIZES[0] or end > len(data):
        raise _Unreadable(position)
    data[position:end] = _message(data[position:end], contents, is_inner=True)
    return end
