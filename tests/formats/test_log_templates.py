"""Every template finds its own sentence; recorded lines of controllers and state changes all have one."""

from __future__ import annotations

import gzip
import re
from collections import Counter
from itertools import pairwise
from random import Random

import pytest

from formats.log_lines import IDENTITY, STATE_IDENTITY, find_records, split_head
from formats.log_templates import (
    FIELD_TYPES,
    Template,
    compiled,
    every_table,
    is_controller,
    state_change_table,
    table_of,
)
from tests.conftest import recording, recordings

SAMPLES = {
    "i": ("0", "12", "-1"),
    "w": ("x", "kafka.X"),
    "s": ("", "Set(1, 2)", "a b c"),
    "L": ("", "1", "1,2,3", "1, 2"),
    "b": ("true", "false"),
    "tp": ("t-0", "[t,0]", "a.b_c-d-12", "[a-b, 3]"),
    "tid": ("Some(AAAAAAAAAAAAAAAAAAAAAA)", "None", "abcdefghijklmnopqrst-_"),
    "st": ("OnlinePartition", "STARTING"),
    "opt": ("Some(1)", "None"),
    "um": ("", "(under-min-isr)"),
}
TEMPLATES = every_table().templates


def sentence(template: Template, random: Random) -> str:
    """The template with its fields filled in, optional parts there or not, the first letter in either case."""
    text = template.pattern
    while "«" in text:  # the innermost first: optional parts may hold others
        text = re.sub(r"«([^«»]*)»", lambda m: random.choice((m[1], "")), text)
    text = re.sub(r"\{\w+:(\w+)\}", lambda m: random.choice(SAMPLES[m[1]]), text)
    if text[:1].isalpha() and template.pattern[:1].isalpha() and random.random() < 0.5:
        text = text[0].swapcase() + text[1:]
    return text


def test_every_template_fits_what_it_prints_and_is_looked_for_there() -> None:
    random = Random(5)
    for template in TEMPLATES:
        for _ in range(8):
            text = sentence(template, random).encode()
            assert compiled(template).fullmatch(text), (template.id, text)
            assert template in every_table().candidates(text), (template.id, text)


def test_ids_are_given_once_and_every_template_says_what_it_means() -> None:
    assert [i for i, n in Counter(t.id for t in TEMPLATES).items() if n > 1] == []
    assert [t.id for t in TEMPLATES if not t.meaning.endswith(".")] == []
    known = {t.id for t in TEMPLATES}
    assert [t.id for t in TEMPLATES if not known >= {*t.before.split(), *t.after.split()}] == []


def test_no_template_holds_a_digit_and_field_types_treat_digits_alike() -> None:
    """What lines of one shape rely on."""
    assert [t.id for t in TEMPLATES if re.search(r"\d", re.sub(r"\{\w+:\w+\}", "", t.pattern))] == []
    for kind, samples in SAMPLES.items():
        for sample in samples:
            other = re.sub(r"\d", "7", sample)
            assert re.fullmatch(FIELD_TYPES[kind], other), kind


@pytest.mark.parametrize("name", recordings("incidents"))
def test_every_recorded_line_of_controllers_and_state_changes_has_a_template(name: str) -> None:
    unknown = []
    count = 0
    for path in sorted(recording(name).glob("broker-*/logs/*.log*")):
        data = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
        starts = [*find_records(data).starts.tolist(), len(data)]
        assert len(starts) - 1 == len(re.findall(rb"(?m)^\[\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3}\]", data))
        for start, end in pairwise(starts):
            head = split_head(data[start:end])
            assert head is not None
            if head.logger is None or not (
                head.logger == "state.change.logger" or is_controller(head.logger)
            ):
                continue
            table = table_of(head.logger)
            identity = (STATE_IDENTITY if table is state_change_table() else IDENTITY).match(head.message)
            count += 1
            if not table.find(head.message[identity.end() if identity else 0 :]):
                unknown.append(head.message[:200])
    assert count > 100
    assert unknown == []
