"""Text identical to that of Kafka's dump tool since 3.3 (the line family of 3.2 to 3.9).

A `}` stands at the end of a legacy record's line although nothing opens it; `lastSequence` is -1 without a
base sequence; keys and payloads are not escaped. Text is decoded as Java does: ill-formed bytes become
U+FFFD, three bytes that would be a surrogate one of them, where Python gives three.

Source: core/src/main/scala/kafka/tools/DumpLogSegments.scala @ 3.9.0-rc3; java.lang.String (Java 17)
"""

import json
import re
from collections.abc import Callable

from formats.log.control_records import ControlType, read_key, read_marker, read_value
from formats.log.message_set import MessageHeader
from formats.log.record_batch import CODEC_MASK, CONTROL, TIMESTAMP_TYPE, TRANSACTIONAL, BatchHeader, Record
from formats.log_dir.index_files import AbortedTransaction
from formats.log_dir.producer_snapshot import ProducerEntry

SURROGATE = re.compile(rb"\xed[\xa0-\xbf][\x80-\xbf]?")
Texts = tuple[str | None, str | None]
Decoder = Callable[[bytes | None, bytes | None, int], Texts]


def java_text(data: bytes) -> str:
    """The text that `new String(data, UTF_8)` gives. The start of a surrogate is one malformed sequence with what continues it."""
    if b"\xed" in data:
        data = SURROGATE.sub(b"\xff", data)
    return data.decode("utf-8", "replace")


def java_path(path: str) -> str:
    """The path as `new File(path)` keeps it: single slashes, none at the end."""
    while "//" in path:
        path = path.replace("//", "/")
    return path.removesuffix("/") or path


def codec_name(codec: int) -> str | None:
    """Kafka's name of a codec; None where it throws IllegalArgumentException."""
    return CODECS[codec] if codec < len(CODECS) else None


CODECS = ("none", "gzip", "snappy", "lz4", "zstd")


def boolean(value: bool) -> str:
    """As Java prints it."""
    return "true" if value else "false"


def optional_long(value: int | None) -> str:
    """As Java's OptionalLong prints itself."""
    return "OptionalLong.empty" if value is None else f"OptionalLong[{value}]"


# The lines of batches of magic 2, of their records, and of older entries; `kctl.dump.kafka_text.columns` fills the first
# two with columns.
BATCH_LINE = (
    "baseOffset: {batch.base_offset} lastOffset: {batch.last_offset} count: {batch.records_count}"
    " baseSequence: {batch.base_sequence} lastSequence: {last_sequence}"
    " producerId: {batch.producer_id} producerEpoch: {batch.producer_epoch}"
    " partitionLeaderEpoch: {batch.partition_leader_epoch}"
    " isTransactional: {is_transactional} isControl: {is_control}"
    " deleteHorizonMs: {delete_horizon} position: {position}"
    " {time}: {batch.max_timestamp} size: {batch.size_in_bytes} magic: {batch.magic}"
    " compresscodec: {codec} crc: {batch.crc} isvalid: {is_valid}\n"
)
RECORD = "| offset: {record.offset} {time}: {record.timestamp} keySize: {key_size} valueSize: {value_size}"
RECORD_LINE = RECORD + " sequence: {record.sequence} headerKeys: [{header_keys}]{contents}\n"
KEY, PAYLOAD = " key: ", " payload: "
MESSAGE_LINE = (
    "offset: {message.offset} position: {position} {time}: {timestamp} size: {message.size_in_bytes}"
    " magic: {message.magic} compresscodec: {codec} crc: {message.crc} isvalid: {is_valid}\n"
)
MESSAGE_RECORD_LINE = RECORD + " isValid: {is_valid} crc: {record.crc}}}{contents}\n"

OF_ATTRIBUTES: dict[str, Callable[[int], str]] = {
    "time": lambda bits: time_name(bool(bits & TIMESTAMP_TYPE)),
    "is_transactional": lambda bits: boolean(bool(bits & TRANSACTIONAL)),
    "is_control": lambda bits: boolean(bool(bits & CONTROL)),
    "codec": lambda bits: str(codec_name(bits & CODEC_MASK)),
}
"""What a batch's line has of its attributes, by name."""


def batch_line(header: BatchHeader, position: int, is_valid: bool) -> str:
    """The line of a batch of magic 2, or of a higher one, which Kafka takes for 2."""
    return BATCH_LINE.format(
        batch=header,
        position=position,
        last_sequence=header.last_sequence,
        delete_horizon=optional_long(header.delete_horizon_ms),
        is_valid=boolean(is_valid),
        **{name: text(header.attributes) for name, text in OF_ATTRIBUTES.items()},
    )


def message_line(header: MessageHeader, timestamp: int, position: int, is_valid: bool) -> str:
    """The line of an entry of magic 0 or 1."""
    return MESSAGE_LINE.format(
        message=header,
        position=position,
        time=timestamp_type(header),
        timestamp=timestamp,
        codec=codec_name(header.codec),
        is_valid=boolean(is_valid),
    )


def timestamp_type(header: BatchHeader | MessageHeader) -> str:
    """Kafka's name of what the timestamps of an entry are."""
    if header.magic == 0:
        return "NoTimestampType"
    return time_name(header.is_log_append_time)


def time_name(is_log_append_time: bool) -> str:
    """Kafka's name of a timestamp type."""
    return "LogAppendTime" if is_log_append_time else "CreateTime"


def decode_text(key: bytes | None, value: bytes | None, offset: int) -> Texts:
    """Key and payload as text: what the dump tool does unless a decoder is asked for."""
    return None if key is None else java_text(key), None if value is None else java_text(value)


def record_line(header: BatchHeader | MessageHeader, time: str, record: Record, decode: Decoder) -> str:
    """The line of one record; `FormatError` where a control record's key or value is not one.

    Like Kafka's, it may span several lines: nothing in keys and payloads is escaped.
    """
    if isinstance(header, BatchHeader) and header.is_control:
        contents = control_text(record)
    else:
        key, payload = decode(record.key, record.value, record.offset)
        contents = "" if key is None else KEY + key
        if payload is not None:
            contents += PAYLOAD + payload
    line = RECORD_LINE if isinstance(header, BatchHeader) else MESSAGE_RECORD_LINE
    return line.format(
        record=record,
        time=time,
        key_size=-1 if record.key is None else len(record.key),
        value_size=-1 if record.value is None else len(record.value),
        header_keys=",".join([java_text(name) for name, _ in record.headers]) if record.headers else "",
        is_valid="true" if record.crc_valid else "false",
        contents=contents,
    )


CONTROL_NAMES = {
    ControlType.SNAPSHOT_HEADER: "SnapshotHeader",
    ControlType.SNAPSHOT_FOOTER: "SnapshotFooter",
    ControlType.KRAFT_VERSION: "KRaftVersion",
    ControlType.KRAFT_VOTERS: "KRaftVoters",
}


def control_text(record: Record) -> str:
    """What follows the header keys of a control record."""
    key = read_key(record.key)
    if key.type in (ControlType.ABORT, ControlType.COMMIT):
        epoch = read_marker(record.value).coordinator_epoch
        return f" endTxnMarker: {key.name} coordinatorEpoch: {epoch}"
    if key.type in CONTROL_NAMES:
        fields = read_value(key.type, record.value)
        text = json.dumps(fields, separators=(",", ":"), ensure_ascii=False)
        return f" {CONTROL_NAMES[ControlType(key.type)]} {text}"
    return f" controlType: {key.name}({key.type})"


def transaction_line(entry: AbortedTransaction) -> str:
    """A row of a transaction index. Kafka prints the high byte of the version alone."""
    return (
        f"version: {entry.version >> 8} producerId: {entry.producer_id} firstOffset: {entry.first_offset}"
        f" lastOffset: {entry.last_offset} lastStableOffset: {entry.last_stable_offset}\n"
    )


def producer_line(entry: ProducerEntry) -> str:
    """A row of a producer snapshot; it ends in a blank where the producer has no batch."""
    open_at = entry.current_txn_first_offset
    line = (
        f"producerId: {entry.producer_id} producerEpoch: {entry.producer_epoch}"
        f" coordinatorEpoch: {entry.coordinator_epoch}"
        f" currentTxnFirstOffset: {optional_long(open_at if open_at >= 0 else None)}"
        f" lastTimestamp: {entry.timestamp} "
    )
    if entry.last_offset >= 0:
        line += (
            f"firstSequence: {entry.first_sequence} lastSequence: {entry.last_sequence}"
            f" lastOffset: {entry.last_offset} offsetDelta: {entry.offset_delta} timestamp: {entry.timestamp}"
        )
    return line + "\n"
