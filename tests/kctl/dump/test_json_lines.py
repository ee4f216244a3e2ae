"""Lines made of columns, JSON and tab-separated, are the rows, line by line."""

import random
from pathlib import Path

import msgspec
import numpy as np
import pytest

from commands.cli.leaving import text_chunks
from commands.cli.render import tab_separated
from commands.segment.dump_lines import TAB_SEPARATED, tab_separated_lines
from formats.binary.crc import crc32c
from formats.compression import Codec
from formats.kafka_text.dump_log_segments import decode_text
from formats.log.log_bytes import LogBytes
from formats.log.record_batch import (
    CONTROL,
    DELETE_HORIZON,
    TIMESTAMP_TYPE,
    TRANSACTIONAL,
    Record,
    write_batch,
)
from kctl.dump.files import SMALL, dump_lines, dump_rows
from kctl.dump.kafka_text.log import LogText
from kctl.dump.opening import opened
from kctl.dump.selection import DumpSelection
from kctl.dump.spelling import json_spelling
from kctl.rows.dump import RECORD
from tests.conftest import kctl, recording, recordings
from tests.log_examples import EXAMPLES, LOG

T = 1_700_000_000_000
decode = msgspec.json.Decoder().decode


def lines(files: list[str], wanted: DumpSelection) -> list[object]:
    said: list[Exception] = []
    found: list[object] = []
    for item in dump_lines(files, wanted, said.append, json_spelling()):
        found += [item] if isinstance(item, dict) else [decode(line) for line in bytes(item).splitlines()]
    assert not said
    return found


def rows(files: list[str], wanted: DumpSelection) -> list[object]:
    said: list[Exception] = []
    found: list[object] = list(dump_rows(files, wanted, said.append))
    assert not said
    return found


@pytest.mark.slow
@pytest.mark.parametrize("name", recordings("segments"))
def test_recorded_logs(name: str) -> None:
    files = [str(path) for path in sorted(recording(name).rglob("data-*/**/*.log"))]
    assert lines(files, DumpSelection(records=True)) == rows(files, DumpSelection(records=True))
    columns, one_by_one = as_tabs(files, DumpSelection(records=True))
    assert columns == one_by_one


def as_tabs(files: list[str], wanted: DumpSelection) -> tuple[bytes, bytes]:
    """Tab-separated lines of columns, and those of rows."""
    said: list[Exception] = []
    items = dump_lines(files, wanted, said.append, TAB_SEPARATED)
    columns = b"".join(map(bytes, tab_separated_lines(items, lambda row: row)))
    all_rows = dump_rows(files, wanted, said.append)
    full = (RECORD.with_all_keys(row) if row["kind"] == "record" else row for row in all_rows)
    assert not said
    return columns, "".join(f"{line}\n" for line in tab_separated(full)).encode()


def log() -> bytes:
    dirty = [
        b'"quoted"',
        b"tab\tand\\",
        "naïve ✓".encode(),
        b"\xff\xfe",
        b"",
        None,
        b"\x7f",
        b"plain",
        b"\xed\xa0\x80",
    ]
    batches = []
    offset = 0
    for codec in Codec:
        records = []
        for value in dirty:
            headers = ((b"h", value), (b"\xff", b"x")) if offset % 4 == 0 else ()
            records.append(Record(offset, T + offset, dirty[offset % 5], value, headers))
            offset += 1
        batches.append(
            write_batch(records, codec=codec, producer_id=4, producer_epoch=1, base_sequence=0x7FFFFFFE)
        )
        plain = [Record(offset + n, T + offset, b"key", b"value %d" % n) for n in range(50)]
        offset += 50
        batches.append(write_batch(plain, codec=codec))
        batches.append(write_batch([], base_offset=offset, last_offset_delta=3, max_timestamp=T))
        offset += 4
    return b"".join(batches)


FORMS = ["utf8", "hex", "base64", "json"]


@pytest.mark.parametrize("form", FORMS)
def test_every_form_of_what_is_no_plain_text(form: str, tmp_path: Path) -> None:
    file = tmp_path / "00000000000000000000.log"
    file.write_bytes(log())
    wanted = DumpSelection(records=True, keys=form, values=form)
    found = lines([str(file)], wanted)
    assert found == rows([str(file)], wanted)
    assert sum(isinstance(r, dict) and r["kind"] == "record" for r in found) == 5 * 59


@pytest.mark.parametrize(
    "wanted",
    [
        DumpSelection(records=True, from_offset=5, to_offset=200),
        DumpSelection(records=True, from_time=T + 70, to_time=T + 150),
        DumpSelection(records=True, key=b"key"),
        DumpSelection(records=True, to_offset=0),
        DumpSelection(records=True, max_decompressed_bytes=100),
        *(DumpSelection(records=True, limit=limit) for limit in (0, 1, 8, 9, 10, 59, 60, 200, 294, 295, 296)),
        *(DumpSelection(limit=limit) for limit in (0, 1, 3, 14, 15, 16)),
        DumpSelection(),
        DumpSelection(from_offset=70),
    ],
    ids=str,
)
def test_filters(wanted: DumpSelection, tmp_path: Path) -> None:
    file = tmp_path / "00000000000000000000.log"
    file.write_bytes(log())
    assert lines([str(file)], wanted) == rows([str(file)], wanted)
    columns, one_by_one = as_tabs([str(file)], wanted)
    assert columns == one_by_one


@pytest.mark.slow
@pytest.mark.parametrize("tail", [b"", bytes(100), b"\xa5" * 100, EXAMPLES["E6"][:40]], ids=len)
@pytest.mark.parametrize("at", [5, 8, 16, 40, 80, 200, 1000, 2500])
def test_damage_and_every_magic(at: int, tail: bytes, tmp_path: Path) -> None:
    data = bytearray(LOG + log() + tail)
    data[at] ^= 0x41
    file = tmp_path / "00000000000000000000.log"
    file.write_bytes(data)
    assert lines([str(file)], DumpSelection(records=True)) == rows([str(file)], DumpSelection(records=True))
    columns, one_by_one = as_tabs([str(file)], DumpSelection(records=True))
    assert columns == one_by_one


@pytest.mark.parametrize(
    "options", [(), ("--records",), ("--records", "--limit", "1000"), ("--limit", "1000")], ids=str
)
def test_an_array_has_the_same_rows(options: tuple[str, ...], tmp_path: Path) -> None:
    files = [tmp_path / f"{base:020d}.log" for base in (0, 7)]
    filler = write_batch([Record(0, T, b"k", b"v" * SMALL)])
    files[0].write_bytes(log() + filler + bytes(40))
    files[1].write_bytes(b"")
    array = decode(kctl("segment", "dump", *options, "--output", "json", *files).out)
    ran = kctl("segment", "dump", *options, "--output", "jsonl", *files)
    assert array == [decode(line) for line in ran.out.splitlines()]
    assert len(array) > 10
    assert decode(kctl("segment", "dump", *options, "--output", "json", files[1]).out) == []


@pytest.mark.parametrize("codec", [Codec.NONE, Codec.SNAPPY])
@pytest.mark.parametrize("count", [1, 2, 400])
def test_batches_of_one_record(tmp_path: Path, count: int, codec: Codec) -> None:
    """Also where the index beside them is right, and where it is not."""
    log = tmp_path / f"{0:020d}.log"
    made = [
        write_batch([Record(n, T + n, b"k%d" % n, b"v" * (n % 50), ())], codec=codec) for n in range(count)
    ]
    log.write_bytes(b"".join(made))
    wanted = DumpSelection(records=True)
    right = rows([str(log)], wanted)
    assert len(right) == 2 * count
    assert lines([str(log)], wanted) == right
    positions = np.cumsum([0, *map(len, made[:-1])])[1::3]
    for wrong in (0, 1):
        entries = np.stack((np.arange(len(positions)), positions + wrong), 1).astype(">i4")
        log.with_suffix(".index").write_bytes(entries.tobytes())
        assert lines([str(log)], wanted) == right


def any_batch(rng: random.Random, offset: int) -> bytes:
    """A batch of anything that a producer or a broker may write."""

    def some() -> bytes | None:
        octets = rng.randbytes(rng.choice((0, 1, 9, 3000)))
        odd = rng.choice(("\x7f", "\x85", "\u200f", "\u2028\u2028", "\\ \t\n\r\x1b", "\u00ad", "\u201c"))
        texts = (b'{"\\": "\x01\xc3\xa9"}', f'["{odd}", 1.50, null]'.encode(), f"{odd}é{odd}".encode())
        return rng.choice((None, octets, octets.hex().encode(), *texts))

    records = [
        Record(
            offset + n,
            rng.choice((-(1 << 40), -1, 0, T, 1 << 61)),
            some(),
            some(),
            tuple((some() or b"", some()) for _ in range(rng.choice((0, 0, 1, 3)))),
        )
        for n in range(rng.choice((1, 2, 30)))
    ]
    attributes = rng.choice((0, TIMESTAMP_TYPE, TRANSACTIONAL, DELETE_HORIZON))
    if rng.random() < 0.3:
        marker = rng.choice((bytes(4), b"\0\0\0\1", b"\0\0\0\2", b"\0\0\0\x63"))
        records = [Record(offset, T, marker, bytes(2) + rng.randbytes(4))]
        attributes |= CONTROL
    return write_batch(
        records,
        codec=rng.choice([*Codec]),
        attributes=attributes,
        producer_id=1 << 40,
        producer_epoch=3,
        base_sequence=rng.choice((-1, 0, 0x7FFFFFFF)),
    )


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("seed", range(5))
def test_both_ways_give_the_same_bytes(form: str, seed: int, tmp_path: Path) -> None:
    """Lines of columns, and rows encoded one by one, of arbitrary batches; tab-separated lines and Kafka's text likewise."""
    rng = random.Random(seed)
    file = tmp_path / f"{0:020d}.log"
    file.write_bytes(b"".join(any_batch(rng, 100 * n) for n in range(40)))
    wanted = DumpSelection(records=True, keys=form, values=form)
    encode, errors = msgspec.json.Encoder().encode, list[Exception]()
    columns = b"".join(
        encode(part) + b"\n" if isinstance(part, dict) else bytes(part)
        for part in dump_lines([str(file)], wanted, errors.append, json_spelling())
    )
    one_by_one = b"".join(encode(row) + b"\n" for row in dump_rows([str(file)], wanted, errors.append))
    assert columns == one_by_one
    columns, one_by_one = as_tabs([str(file)], wanted)
    assert columns == one_by_one
    with opened(file) as source:
        texts = [
            b"".join(
                map(
                    bytes,
                    LogText(LogBytes(source), records=True, decode=decode_text, limit=1 << 28).pieces(quick),
                )
            )
            for quick in (source, None)
        ]
    assert texts[0] == texts[1]
    assert not errors


def test_a_codec_that_no_version_has(tmp_path: Path) -> None:
    made = bytearray(write_batch([Record(0, T, b"k", b"v")]))
    made[22] |= 5
    made[17:21] = crc32c(bytes(made[21:])).to_bytes(4, "big")
    file = tmp_path / f"{0:020d}.log"
    file.write_bytes(made)
    assert lines([str(file)], DumpSelection()) == rows([str(file)], DumpSelection())


@pytest.mark.parametrize("options", [(), ("--records",), ("--records", "--limit", "1000")], ids=str)
def test_tab_separated_lines_of_large_and_small_logs(options: tuple[str, ...], tmp_path: Path) -> None:
    """A command prints the same lines, headed once, of a log that is made of columns and of one that is made of rows."""
    paths = [tmp_path / f"{base:020d}.log" for base in (0, 7)]
    filler = write_batch([Record(0, T, b"k", b"v" * SMALL)])
    paths[0].write_bytes(
        write_batch([], base_offset=0, last_offset_delta=3, max_timestamp=T) + log() + filler + b"\xa5" * 100
    )
    paths[1].write_bytes(log())
    limit = int(options[-1]) if options[-1:] == ("1000",) else None
    wanted = DumpSelection(records="--records" in options, limit=limit)
    ran = kctl("segment", "dump", *options, *paths)
    expected = as_tabs([str(path) for path in paths], wanted)[1]
    assert b"".join(text_chunks([expected])) == ran.out
    assert ran.status == 5
