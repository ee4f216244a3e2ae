"""The text of sasl.jaas.config, by the rules of Java's StreamTokenizer."""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from formats.errors import MalformedLine
from formats.jaas import LoginModule, parse_jaas

MODULE = "org.apache.kafka.common.security.plain.PlainLoginModule"


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ("", {}),
        ('username="ann" password="a;b=c d"', {"username": "ann", "password": "a;b=c d"}),
        (r'password="a\"b\\c\tdÿ\101\0"', {"password": 'a"b\\c\tdÿA\0'}),
        ("username='o\"x' password=bare-Word.1", {"username": 'o"x', "password": "bare-Word.1"}),
        ("a=1 // to the end\n /* b=2; */ c = 3", {"a": "1", "c": "3"}),
        ('a="1"b="2"', {"a": "1", "b": "2"}),
        ("a=é€", {"a": "é€"}),
    ],
)
def test_options(options: str, expected: dict[str, str]) -> None:
    assert parse_jaas(f"{MODULE} Required {options};") == LoginModule(MODULE, expected)


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("", "no login module is named"),
        (f'{MODULE} required username="ann"', "no semicolon at the end"),
        (f'{MODULE} required password="a;', "no semicolon at the end"),
        (f"{MODULE} required; {MODULE} required;", "more than one login module"),
        (
            f'{MODULE} username="ann";',
            "no required, requisite, sufficient or optional after the login module",
        ),
        (f"{MODULE} required username;", "option username has no value"),
        (f"{MODULE} required username=;", "option username has no value"),
        (f"{MODULE} required =a;", "an option has no name"),
        (f"{MODULE} required file=/etc/x;", "no semicolon at the end"),
    ],
)
def test_what_kafka_refuses_as_well(text: str, what: str) -> None:
    with pytest.raises(MalformedLine) as refused:
        parse_jaas(text)
    assert refused.value.what == what


@given(st.text())
def test_any_password_in_quotes_is_read_back(password: str) -> None:
    written = "".join("\\" + c if c in '"\\' else {"\n": r"\n", "\r": r"\r"}.get(c, c) for c in password)
    assert parse_jaas(f'{MODULE} required password="{written}";').options == {"password": password}


@given(st.text())
def test_any_text_is_read_or_refused(text: str) -> None:
    with contextlib.suppress(MalformedLine):
        parse_jaas(text)
