"""Columns joined row by row, and texts encoded a column at a time, against what is done for each row alone."""

from base64 import b64encode

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from commands.segment.dump_lines import TAB_SEPARATED
from kctl.dump.escaped_texts import base64_texts, escaped_texts, hex_texts
from kctl.dump.spelling import Spelling, json_spelling
from kctl.dump.text_columns import at_first_rows, joined, lines_of

NUMBERS = st.sampled_from(
    [(-1, 0), (0, 9), (100, 199), (95, 105), (-(2**63), 2**63 - 1), (10**18, 10**18 + 70_000)]
)
TEXTS = st.binary(max_size=5) | st.just(b"constant " * 9)


@pytest.mark.slow
@given(st.data(), st.integers(1, 6))
def test_columns_of_every_kind(data: st.DataObject, rows: int) -> None:
    columns: list[object] = []
    expected: list[list[bytes]] = []
    for kind in data.draw(st.lists(st.sampled_from("ctnu"), max_size=9)):
        if kind == "c":
            text = data.draw(TEXTS)
            columns.append(text)
            expected.append([text] * rows)
        elif kind == "t":
            texts = data.draw(st.lists(TEXTS, min_size=rows, max_size=rows))
            columns.append(pa.array(texts, pa.binary()))
            expected.append(texts)
        else:
            least, most = data.draw(NUMBERS) if kind == "n" else (0, 2**32 - 1)
            values = data.draw(st.lists(st.integers(least, most), min_size=rows, max_size=rows))
            columns.append(np.array(values, np.int64 if kind == "n" else np.uint32))
            expected.append([b"%d" % value for value in values])
    columns.append(np.arange(rows))
    expected.append([b"%d" % row for row in range(rows)])
    found = joined(*columns)
    assert found.to_pylist() == [b"".join(row) for row in zip(*expected, strict=True)]
    assert bytes(lines_of(found)) == b"".join(found.to_pylist())


@given(st.lists(st.tuples(st.booleans(), st.integers(0, 3)), min_size=1, max_size=8))
def test_a_line_stands_before_the_first_row_of_its_batch(batches: list[tuple[bool, int]]) -> None:
    lines = [b"batch %d\n" % number for number in range(len(batches))]
    rows = [number for number, (_, count) in enumerate(batches) for _ in range(count)]
    if not rows:
        return
    found = at_first_rows(pa.array(lines, pa.binary()), np.array(rows)).to_pylist()
    given_before, expected = 0, []
    for row in rows:
        expected.append(b"".join(lines[given_before : row + 1]))
        given_before = max(given_before, row + 1)
    assert found == expected


ODD = "\x7f\x85\u00ad\u061c\u200f\u2028\u202e\u2069\ue000"


@pytest.mark.parametrize("spelling", [json_spelling(), TAB_SEPARATED], ids=["json", "tabs"])
@given(
    texts=st.lists(
        st.binary(max_size=40)
        | st.text(max_size=40).map(str.encode)
        | st.text('ab"\\\n\r\t\x0b\x7f', max_size=200).map(str.encode)
        | st.text("aé\\\n" + ODD, max_size=20).map(str.encode),
        min_size=1,
    )
)
def test_texts_are_encoded_as_each_is_alone(spelling: Spelling, texts: list[bytes]) -> None:
    data = np.frombuffer(b"between".join(texts) + b"between", np.uint8)
    sizes = np.array([len(text) for text in texts])
    starts = np.cumsum(sizes + 7) - sizes - 7
    assert base64_texts(data, starts, starts + sizes).to_pylist() == [b64encode(text) for text in texts]
    assert hex_texts(data, starts, starts + sizes).to_pylist() == [text.hex().encode() for text in texts]
    found, bad = escaped_texts(data, starts, starts + sizes, spelling)
    quote = spelling.value("")[:1]
    for row, text in enumerate(texts):
        try:
            expected = spelling.value(text.decode())
        except UnicodeDecodeError:
            assert bad is not None and bad[row] and found[row].as_py() == b""
            continue
        assert bad is None or not bad[row]
        assert quote + found[row].as_py() + quote == expected
