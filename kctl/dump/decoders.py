"""What the dump tool's decoder options make of keys and values: one line of the table for each."""

from importlib import import_module

from formats.errors import FormatError
from formats.kafka_text import Decoder, Texts


def remote_texts(key: bytes | None, value: bytes | None, offset: int) -> Texts:
    """A record of `__remote_log_metadata`; there are no keys."""
    from formats.remote_log_metadata import read_remote_log_metadata
    from formats.remote_log_metadata_text import format_kafka_event

    try:
        return None, format_kafka_event(read_remote_log_metadata(value or b""))
    except FormatError as error:
        return None, f"Error at offset {offset}, skipping. {error.what}"


# Option name to `module:function`; a module is loaded when its option is given.
DECODERS: dict[str, str] = {
    "text": "formats.kafka_text:decode_text",
    "offsets": "formats.kafka_decoders:offsets_texts",
    "transaction-log": "formats.kafka_decoders:transaction_texts",
    "cluster-metadata": "formats.kafka_decoders:metadata_texts",
    "remote-log-metadata": "kctl.dump.decoders:remote_texts",
}


def decoder(name: str) -> Decoder:
    """The decoder of that name."""
    module, function = DECODERS[name].split(":")
    found: Decoder = getattr(import_module(module), function)
    return found
