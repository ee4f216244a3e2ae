"""JSON that is refused before it takes memory: what is counted is never less than what CPython takes."""

import json
import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from formats import bounded_json

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)
DENSE = [
    "[]", "{}", '{"":0}', '"ab"', '""', "1.5", "12345", "[0]", "[[]]", "[[[[[]]]]]", '{"a":{}}', '{"a":[]}', '"\U0001f600"',
]  # fmt: skip


@given(VALUES, st.booleans())
def test_every_document_is_parsed_as_by_json(value: object, is_ascii: bool) -> None:
    text = json.dumps(value, ensure_ascii=is_ascii)
    assert (
        bounded_json.loads(text)
        == bounded_json.loads(text.encode("utf-8", "surrogatepass"))
        == json.loads(text)
    )


@pytest.mark.parametrize("value", DENSE)
def test_nothing_takes_more_than_is_counted(value: str) -> None:
    text = "[" + ",".join([value] * 50_000) + "]"
    tracemalloc.start()
    parsed = json.loads(text)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert len(parsed) == 50_000
    # A string of text beyond Latin-1 takes up to four bytes for each character.
    assert peak < bounded_json._weight_of_values(text) + 4 * len(text)


@pytest.mark.parametrize("value", DENSE)
def test_too_many_values_are_refused(value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    text = "[" + ",".join([value] * 50_000) + "]"
    monkeypatch.setattr(bounded_json, "LEAST", 0)
    monkeypatch.setattr(bounded_json, "MOST", 1 << 20)
    with pytest.raises(bounded_json.TooMany, match="1 MiB"):
        bounded_json.loads(text)


@pytest.mark.parametrize("content", ["[],{}:", '\\"[],{}', "\\\\", '[\\\\\\"', "\n"])
def test_what_stands_within_strings_is_not_counted(content: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bounded_json, "LEAST", 0)
    monkeypatch.setattr(bounded_json, "MOST", 1000)
    text = json.dumps(["x", content * 50_000])
    assert bounded_json.loads(text) == json.loads(text)
    with pytest.raises(json.JSONDecodeError):
        bounded_json.loads(text[:-2])
