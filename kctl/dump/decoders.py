"""What the dump tool's decoder options make of keys and values: one line of the table for each."""

from importlib import import_module

from formats.kafka_text import Decoder

# Option name to `module:function`; a module is loaded when its option is given.
DECODERS: dict[str, str] = {
    "text": "formats.kafka_text:decode_text",
    "offsets": "formats.kafka_decoders:offsets_texts",
    "transaction-log": "formats.kafka_decoders:transaction_texts",
    "cluster-metadata": "formats.kafka_decoders:metadata_texts",
}


def decoder(name: str) -> Decoder:
    """The decoder of that name."""
    module, function = DECODERS[name].split(":")
    found: Decoder = getattr(import_module(module), function)
    return found
