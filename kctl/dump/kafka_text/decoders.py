"""The decoders of keys and values for the dump tool's options, a line of the table each."""

from collections.abc import Callable
from functools import partial
from importlib import import_module

from formats.errors import FormatError
from formats.kafka_text.dump_log_segments import Decoder, Texts


def remote_texts(key: bytes | None, value: bytes | None, offset: int) -> Texts:
    """A record of `__remote_log_metadata`; there are no keys."""
    from formats.kafka_text.remote_log_metadata import format_kafka_event
    from formats.messages.remote_log_metadata import read_remote_log_metadata

    try:
        return None, format_kafka_event(read_remote_log_metadata(value or b""))
    except FormatError as error:
        return None, f"Error at offset {offset}, skipping. {error.what}"


# Option name to `module:function`; a module is loaded when its option is given.
DECODERS: dict[str, str] = {
    "text": "formats.kafka_text.dump_log_segments:decode_text",
    "offsets": "formats.kafka_text.internal_topics:offsets_texts",
    "transaction-log": "formats.kafka_text.internal_topics:transaction_texts",
    "cluster-metadata": "formats.kafka_text.internal_topics:metadata_texts",
    "remote-log-metadata": "kctl.dump.kafka_text.decoders:remote_texts",
}


def decoder(name: str, show_secrets: bool = False) -> Decoder:
    """The decoder of that name."""
    module, function = DECODERS[name].split(":")
    decode: Callable[..., Texts] = getattr(import_module(module), function)
    return partial(decode, show_secrets=True) if show_secrets and name == "cluster-metadata" else decode
