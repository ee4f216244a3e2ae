"""Bytes of records as columns of text: escaped as an output form has it, in hexadecimal digits, or in base64.

The texts of a column lie one behind the other, so all are escaped as one text; where each then ends follows from how
many bytes before it grew. Rows that are not UTF-8 are encoded as one base64 text likewise.
"""

from binascii import b2a_base64, hexlify
from functools import cache

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from formats.arrays import Ints, Mask
from kctl.dump.spelling import Spelling
from kctl.dump.text_columns import Column, by_number, ends_of, octets_of, slices, texts_at
from kctl.dump.values import named

Octets = NDArray[np.uint8]
FIRST_PLAIN, DELETE, PAD = 0x20, 0x7F, ord("=")


def field(
    name: str, data: Octets, positions: Ints, sizes: Ints, form: str, spelling: Spelling
) -> list[Column]:
    """`NAME` or `NAME_base64` of each record, as columns to be joined."""
    null = sizes < 0
    of_null = spelling.named(name, {name: None})
    if null.all():
        return [of_null]
    ends = positions + np.maximum(sizes, 0)
    if form == "json":
        return [pa.array(_json_values(name, data, positions, ends, null, spelling), pa.binary())]
    if form == "hex":
        texts, no_text = hex_texts(data, positions, ends), None
    elif form == "base64":
        texts, no_text = b"", np.ones(len(positions), np.bool_)
    else:
        texts, no_text = escaped_texts(data, positions, ends, spelling)
    kinds, columns = null.astype(np.int8), [texts]
    if no_text is not None:
        columns.append(base64_texts(data, positions, np.where(no_text, ends, positions)))
        kinds[no_text & ~null] = 2
    text, base64 = spelling.around_text(name), spelling.around_base64(name)
    begins, behind = zip(text, (of_null, b""), base64, strict=True)
    return [by_number([*begins], kinds), *columns, by_number([*behind], kinds)]


def _json_values(
    name: str, data: Octets, starts: Ints, ends: Ints, null: Mask, spelling: Spelling
) -> list[bytes]:
    octets = memoryview(data.data)
    rows = zip(starts.tolist(), ends.tolist(), null.tolist(), strict=True)
    return [
        spelling.named(name, named(name, None if is_null else bytes(octets[start:end]), "json"))
        for start, end, is_null in rows
    ]


# --- text ---------------------------------------------------------------------------------------------


def escaped_texts(data: Octets, starts: Ints, ends: Ints, spelling: Spelling) -> tuple[pa.Array, Mask | None]:
    """data[start:end] of each row, escaped, and which rows are no UTF-8: those are empty (None: there are none)."""
    texts = slices(data, starts, ends)
    offsets = ends_of(texts)
    octets = octets_of(texts)
    text = _text(octets, offsets)
    if text is None:
        bad = _bad_rows(texts, octets, offsets)
        return escaped_texts(data, starts, np.where(bad, starts, ends), spelling)[0], bad
    growth, characters = _growth_before(octets, text, offsets, spelling)
    escaped = texts
    if characters:
        escaped = texts_at(offsets + growth, pa.py_buffer(spelling.escaped(text, characters)))
    if spelling.odd and not text.isascii() and spelling.odd.search(text):
        escaped = _with_odd_rows(texts, escaped, spelling)
    return escaped, None


def _text(octets: Octets, offsets: NDArray[np.int32]) -> str | None:
    """The rows as one text; None where one is no UTF-8 by itself."""
    try:
        text = str(octets.data, "utf-8")
    except UnicodeDecodeError:
        return None
    if text.isascii():
        return text
    filled = offsets[:-1][offsets[1:] > offsets[:-1]]
    begins_inside = ((octets[filled] & 0xC0) == 0x80).any()
    return None if begins_inside else text


def _bad_rows(texts: pa.Array, octets: Octets, offsets: NDArray[np.int32]) -> Mask:
    """Rows that are no UTF-8 by themselves."""
    bad: Mask = ~pc.string_is_ascii(texts.view(pa.string())).to_numpy(zero_copy_only=False)
    view, ends = memoryview(octets.data), offsets.tolist()
    for row in np.flatnonzero(bad).tolist():
        try:
            str(view[ends[row] : ends[row + 1]], "utf-8")
        except UnicodeDecodeError:
            continue
        bad[row] = False
    return bad


@cache
def _growth(spelling: Spelling) -> tuple[Ints, str]:
    """By character of ASCII, how many more bytes it becomes; and which printable ones become two."""
    growth = np.array([len(spelling.escaped(chr(byte), chr(byte))) - 1 for byte in range(128)], np.int64)
    return growth, "".join(map(chr, FIRST_PLAIN + np.flatnonzero(growth[FIRST_PLAIN:DELETE])))


def _growth_before(
    octets: Octets, text: str, places: NDArray[np.int32], spelling: Spelling
) -> tuple[Ints, str]:
    """For each place, how much what is before it grows when escaped; and the characters that do."""
    grows, printable = _growth(spelling)
    characters = "".join(character for character in printable if character in text)
    before = np.zeros(len(places), np.int64)
    if characters:
        mask = octets == ord(characters[0])
        for character in characters[1:]:
            mask |= octets == ord(character)
        before = _counts_before(mask, places)
    has_delete = bool(grows[DELETE]) and chr(DELETE) in text
    if has_delete or (len(octets) and int(octets.min()) < FIRST_PLAIN):
        controls = np.flatnonzero((octets < FIRST_PLAIN) | (octets == DELETE))
        found = octets[controls]
        sums = np.concatenate(([0], np.cumsum(grows[found])))
        before = before + sums[np.searchsorted(controls, places)]
        characters += "".join(map(chr, np.flatnonzero(np.bincount(found))))
    return before, characters


def _counts_before(mask: Mask, places: NDArray[np.int32]) -> Ints:
    """For each place how many bytes before it the mask holds for: whole words of bits, then the rest of one."""
    bits = np.packbits(mask, bitorder="little")
    words = np.concatenate((bits, np.zeros(16 - len(bits) % 8, np.uint8))).view(np.uint64)
    before = np.concatenate(([0], np.cumsum(np.bitwise_count(words), dtype=np.int64)))
    at = places >> 6
    mask_below = (np.uint64(1) << (places & 63).astype(np.uint64)) - np.uint64(1)
    counted: Ints = before[at] + np.bitwise_count(words[at] & mask_below)
    return counted


def _with_odd_rows(texts: pa.Array, escaped: pa.Array, spelling: Spelling) -> pa.Array:
    """The escaped texts, rows that have anything odd written one by one."""
    odd = odd_rows(texts, spelling)
    written = [spelling.value(texts[row].as_py().decode()) for row in np.flatnonzero(odd).tolist()]
    return pc.replace_with_mask(escaped, pa.array(odd), pa.array(written, pa.binary()))


def odd_rows(texts: pa.Array, spelling: Spelling) -> Mask:
    """Which texts, all UTF-8, hold what the spelling calls odd."""
    odd: Mask = np.zeros(len(texts), np.bool_)
    octets, ends = octets_of(texts), ends_of(texts).tolist()
    if spelling.odd is None or not len(octets) or int(octets.max()) < DELETE:
        return odd
    view = memoryview(octets.data)
    high = np.flatnonzero(octets >= DELETE)
    for row in np.unique(np.searchsorted(ends_of(texts), high, "right") - 1).tolist():
        odd[row] = spelling.odd.search(str(view[ends[row] : ends[row + 1]], "utf-8")) is not None
    return odd


# --- what is no text ----------------------------------------------------------------------------------


def hex_texts(data: Octets, starts: Ints, ends: Ints) -> pa.Array:
    """data[start:end] of each row in hexadecimal digits."""
    texts = slices(data, starts, ends)
    return texts_at(ends_of(texts) * 2, pa.py_buffer(hexlify(octets_of(texts).data)))


def base64_texts(data: Octets, starts: Ints, ends: Ints) -> pa.Array:
    """data[start:end] of each row in base64; `data` goes on for two bytes behind each row.

    Rows of whole groups of three bytes can be encoded one behind the other. The bytes that a row lacks are zero, and
    what they become is then overwritten.
    """
    lacks = (starts - ends) % 3
    texts = slices(data, starts, ends + lacks)
    after = ends_of(texts)[1:]
    octets = octets_of(texts).copy()
    for count in (1, 2):
        octets[after[lacks >= count] - count] = 0
    encoded = np.frombuffer(bytearray(b2a_base64(octets.data, newline=False)), np.uint8)
    offsets = ends_of(texts) // 3 * 4
    for count in (1, 2):
        encoded[offsets[1:][lacks >= count] - count] = PAD
    return texts_at(offsets, pa.py_buffer(encoded))
