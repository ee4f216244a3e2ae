"""JSON and TOML that are refused before they take memory: what is counted is never less than what CPython takes."""

import json
import tomllib
import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from formats import bounded_json, bounded_toml

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)
DENSE = [
    "[]", "{}", '{"":0}', '"ab"', '""', "1.5", "12345", "[0]", "[[]]", "[[[[[]]]]]", '{"a":{}}', '{"a":[]}', '"\U0001f600"',
]  # fmt: skip


@pytest.mark.slow
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
    with pytest.raises(bounded_json.TooManyValues, match="1 MiB"):
        bounded_json.loads(text)


@pytest.mark.parametrize("content", ["[],{}:", '\\"[],{}', "\\\\", '[\\\\\\"', "\n"])
def test_what_stands_within_strings_is_not_counted(content: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bounded_json, "LEAST", 0)
    monkeypatch.setattr(bounded_json, "MOST", 1000)
    text = json.dumps(["x", content * 50_000])
    assert bounded_json.loads(text) == json.loads(text)
    with pytest.raises(json.JSONDecodeError):
        bounded_json.loads(text[:-2])


# --- TOML ---------------------------------------------------------------------------------------------

DENSE_LINES = [
    "[a{}]", "[a{}.b.c]", "[a{}" + ".a" * 30 + "]", "a{}=1", "a{}.b.c=1", "'{}'.''=1", "a{}" + ".a" * 30 + "=1", "[[s]]\na=1", "a{}=[[],[],[[]]]",
    "a{}=[{{}},{{a=1}},{{a.b.c=1}}]", "a{}=['', 1.5, 2020-01-01]",
]  # fmt: skip


@pytest.mark.parametrize("head", ["", "[h" + ".h" * 31 + "]\n"])
@pytest.mark.parametrize("line", DENSE_LINES)
def test_no_toml_takes_more_than_is_counted(head: str, line: str, monkeypatch: pytest.MonkeyPatch) -> None:
    text = head + "".join(line.format(number) + "\n" for number in range(500 if ".a" in line else 2000))
    tracemalloc.start()
    parsed = bounded_toml.loads(text)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert parsed == tomllib.loads(text)
    monkeypatch.setattr(bounded_toml, "MOST", peak - 4 * len(text))
    with pytest.raises(bounded_toml.TooComplex, match="MiB"):
        bounded_toml.loads(text)


@pytest.mark.parametrize("key", ["a" + ".a" * 40, '"x=" . ' * 40 + "a", "'[,'." * 40 + "a"])
@pytest.mark.parametrize("text", ["{} = 1", "[{}]", "[[{}]]", "a = {{ {} = 1 }}", "a = [{{ {} = 1 }}]"])
def test_a_deep_key_is_refused(key: str, text: str) -> None:
    assert tomllib.loads(text.format(key))
    with pytest.raises(bounded_toml.TooComplex, match="32 parts"):
        bounded_toml.loads(text.format(key))


@pytest.mark.parametrize(
    "text",
    [
        'a = "{0}"', "a = '{0}'", 'a = """\n"{0}""\\""""', "a = '''\n'{0}''\n'''", "# {0}", 'a = "\\"{0}" # "', "a = 1 # ' {0}",
        'a = """"{0}""""', "a = '''{0}'''''",
    ],
)  # fmt: skip
def test_strings_and_comments_are_not_counted(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bounded_toml, "MOST", 50_000)
    document = text.format("zk1.a.b:2181,[x]={y}." * 500)
    assert bounded_toml.loads(document) == tomllib.loads(document)


@pytest.mark.parametrize("text", ["a = {}", "[t]\na = [1, -{}]", "a = 0x{}"])
def test_a_number_too_long_for_python_is_refused(text: str) -> None:
    digits = text.format("9" * 5000)
    if "0x" in text:
        assert bounded_toml.loads(digits)  # no power of two has a limit
    else:
        with pytest.raises(bounded_toml.TooComplex, match="digits"):
            bounded_toml.loads(digits)


def test_toml_nested_too_deep_is_refused() -> None:
    with pytest.raises(bounded_toml.TooComplex, match="deep"):
        bounded_toml.loads("a = " + "[" * 50_000 + "]" * 50_000)


@pytest.mark.parametrize("part", ['"', "'", '\\"', '"""', "'''", "#", '"\\'])
def test_text_that_does_not_end_is_counted_in_time(part: str) -> None:
    with pytest.raises(ValueError):
        bounded_toml.loads("a = " + part * 100_001 + "\n[")
