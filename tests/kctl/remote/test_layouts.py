"""How objects are named: Kafka's own layout, Aiven's, and one from a file; and reading through a manifest."""

from __future__ import annotations

import base64
import json
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks.in_memory import InMemory
from formats.compression.writers import compress
from formats.errors import FormatError
from formats.tier.aiven_manifest import parse_manifest, read_chunk_sizes, write_chunk_sizes
from formats.tier.object_names import (
    AIVEN,
    LOCAL_TIERED_STORAGE,
    ObjectKind,
    ObjectLayout,
    ObjectName,
    parse_layout,
)
from kctl.tier.audit.inventory import detect_layout
from kctl.tier.audit.manifest_log import ChunkedLog

TOPIC_ID, SEGMENT = "LWgrMmVrT0a__7a4SasuPA", "-CqX9U--S-6U8XUM9II25Q"
FILE = """
name = "flat"
key = "{topic_id}.{topic}.{partition}.{start_offset}.{segment_id}{suffix}"
optional = ["transaction_index"]
[suffixes]
".log" = "log"
".idx" = "offset_index"
".txn" = "transaction_index"
"""


@pytest.mark.parametrize(
    ("layout", "key", "kind"),
    [
        (LOCAL_TIERED_STORAGE, f"a.b-c-3-{TOPIC_ID}/00000000000000000217-{SEGMENT}.log", ObjectKind.LOG),
        (
            LOCAL_TIERED_STORAGE,
            f"a.b-c-3-{TOPIC_ID}/00000000000000000217-{SEGMENT}.leader_epoch_checkpoint",
            ObjectKind.LEADER_EPOCHS,
        ),
        (AIVEN, f"a.b-c-{TOPIC_ID}/3/00000000000000000217-{SEGMENT}.rsm-manifest", ObjectKind.MANIFEST),
        (parse_layout(FILE), f"{TOPIC_ID}.a.b-c.3.217.{SEGMENT}.idx", ObjectKind.OFFSET_INDEX),
    ],
)
@pytest.mark.parametrize("prefix", ["", "kafka-tiered-storage/", "some/where/"])
def test_keys_are_read_and_written(layout: ObjectLayout, key: str, kind: ObjectKind, prefix: str) -> None:
    name = layout.parse(prefix + key)
    assert name is not None
    expected = ObjectName("a.b-c", TOPIC_ID, 3, 217, SEGMENT, kind, name.suffix, prefix)
    assert name == expected
    assert layout.format(name, kind) == prefix + key


@pytest.mark.parametrize(
    "key",
    [
        "",
        "meta.properties",
        f"orders-0-{TOPIC_ID}/217-short.log",
        f"orders-{TOPIC_ID}/00000000000000000217.log",
    ],
)
def test_other_keys_are_none(key: str) -> None:
    assert LOCAL_TIERED_STORAGE.parse(key) is None and AIVEN.parse(key) is None


def test_an_unknown_suffix_keeps_the_segment() -> None:
    name = LOCAL_TIERED_STORAGE.parse(f"orders-0-{TOPIC_ID}/00000000000000000217-{SEGMENT}.log.tmp")
    assert name is not None and (name.kind, name.suffix) == (None, ".log.tmp")


def test_the_layout_is_told_from_keys() -> None:
    local = f"orders-0-{TOPIC_ID}/00000000000000000217-{SEGMENT}.log"
    aiven = f"x/orders-{TOPIC_ID}/0/00000000000000000217-{SEGMENT}.log"
    assert detect_layout([local, "junk"]) is LOCAL_TIERED_STORAGE
    assert detect_layout([aiven, aiven, "junk"]) is AIVEN
    assert detect_layout([]) is LOCAL_TIERED_STORAGE


@pytest.mark.parametrize(
    "text", ["", "key = 1", FILE.replace("{segment_id}", "x"), FILE.replace('"log"', '"what"'), "[["]
)
def test_what_is_no_layout_is_refused(text: str) -> None:
    with pytest.raises(FormatError, match="not a layout"):
        parse_layout(text)


# --- manifests ----------------------------------------------------------------------------------------


def manifest(**changes: Any) -> str:
    fields: dict[str, Any] = {
        "version": "1",
        "chunkIndex": {
            "type": "fixed",
            "originalChunkSize": 100,
            "originalFileSize": 250,
            "transformedChunkSize": 110,
            "finalTransformedChunkSize": 60,
        },
        "segmentIndexes": {
            "offset": {"position": 0, "size": 8},
            "timestamp": {"position": 8, "size": 12},
            "transaction": None,
        },
        "compression": False,
        "remoteLogSegmentMetadata": {},
    }
    return json.dumps({**fields, **changes})


def test_a_manifest_with_chunks_of_one_size() -> None:
    read = parse_manifest(manifest())
    assert read.transformed_chunk_sizes == (110, 110, 60)
    assert read.indexes == {ObjectKind.OFFSET_INDEX: (0, 8), ObjectKind.TIME_INDEX: (8, 12)}
    assert (read.is_compressed, read.is_encrypted) == (False, False)
    assert parse_manifest(manifest(encryption={"aad": ""})).is_encrypted


def test_a_manifest_with_chunks_of_their_own_sizes() -> None:
    packed = base64.b64encode(write_chunk_sizes((90, 95, 30))).decode()
    chunks = {
        "type": "variable",
        "originalChunkSize": 100,
        "originalFileSize": 250,
        "transformedChunks": packed,
    }
    assert parse_manifest(manifest(chunkIndex=chunks)).transformed_chunk_sizes == (90, 95, 30)


@pytest.mark.parametrize(
    "text",
    ["", "[]", "{}", manifest(version="2"), manifest(chunkIndex={}), manifest(segmentIndexes={"offset": {}}),
     manifest(chunkIndex={"type": "variable", "originalChunkSize": 100, "originalFileSize": 250, "transformedChunks": "AAAA"}),
     manifest(chunkIndex={"type": "fixed", "originalChunkSize": 1, "originalFileSize": 1 << 60})],
)  # fmt: skip
def test_what_is_no_manifest_is_refused(text: str) -> None:
    with pytest.raises(FormatError):
        parse_manifest(text)


@settings(deadline=None)
@given(st.lists(st.integers(0, (1 << 31) - 1), max_size=8))
def test_chunk_sizes_survive_the_round_trip(sizes: list[int]) -> None:
    assert read_chunk_sizes(write_chunk_sizes(tuple(sizes))) == tuple(sizes)


def test_chunk_sizes_as_the_plugin_packs_them() -> None:
    # Three values of one byte over the smallest, the last in full.
    packed = bytes.fromhex("00000004000f424001000a1400000007")
    assert read_chunk_sizes(packed) == (1000000, 1000010, 1000020, 7)
    assert write_chunk_sizes((1000000, 1000010, 1000020, 7)) == packed


def test_a_log_is_read_through_compressed_chunks() -> None:
    log = bytes(np.random.default_rng(1).integers(0, 4, 250, np.uint8))
    pieces = [compress(4, log[at : at + 100], magic=2) for at in range(0, 250, 100)]
    packed = base64.b64encode(write_chunk_sizes(tuple(map(len, pieces)))).decode()
    chunks = {
        "type": "variable",
        "originalChunkSize": 100,
        "originalFileSize": 250,
        "transformedChunks": packed,
    }
    read = ChunkedLog(
        InMemory(b"".join(pieces)), parse_manifest(manifest(chunkIndex=chunks, compression=True))
    )
    assert read.size == 250
    for position, size in ((0, 250), (0, 10), (95, 10), (199, 2), (240, 100), (250, 1)):
        assert read.read_at(position, size) == log[position : position + size]
    room = np.zeros(30, np.uint8)
    assert read.read_into(230, room) == 20 and room[:20].tobytes() == log[230:]


def test_a_chunk_that_cannot_be_unpacked_is_an_os_error() -> None:
    chunks = parse_manifest(manifest(compression=True))
    read = ChunkedLog(InMemory(bytes(280)), chunks)
    with pytest.raises(OSError, match="chunk 0 cannot be unpacked"):
        read.read_at(0, 10)
