"""Words that people read: one of a thing is `1 line`, and what Python says of text is said in kctl's words."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from formats.words import counted
from kctl.errors import reason_of
from kctl.findings import Counted, all_findings
from tests.conftest import HERE

ROOT = HERE.parent
COUNTED_NOUNS = (
    "line", "file", "record", "partition", "segment", "broker", "topic", "entries", "batches", "offset", "replica", "folder",
    "row", "object", "group", "member", "producer", "event", "request", "losses", "change", "task", "duplicate", "finding",
    "error", "warning", "voter", "node", "subject", "transaction", "day", "hour", "minute", "time", "pair", "key", "rule",
)  # fmt: skip
PLURAL = re.compile(
    rf" ?(?:more |other |lost |open |sound )?(?:{'|'.join(n if n.endswith('es') else n + 's' for n in COUNTED_NOUNS)})\b"
)
# Where there is one, another sentence is printed, or it is a list of at least two.
ALWAYS_SEVERAL = {
    "kctl/audit/merge.py": ("batches_count",), "kctl/broker_logs/named_brokers.py": ("names",),
    "kctl/checks/retention.py": ("days",), "kctl/report/lineage.py": ("self.lanes",), "kctl/report/incidents.py": ("partitions",),
    "kctl/report/remote.py": ("times",), "kctl/broker_logs/history/quorum_terms.py": ("run",), "commands/state_log_chart.py": ("row['times']",),
    "kctl/judging/divergence.py": ("evidence_brokers",), "kctl/judging/loss.py": ("evidence_brokers", "needed"), "kctl/judging/sentences.py": ("judged",),
    "kctl/findings/__init__.py": ("lines",), "kctl/wire/recovering/planning.py": ("partition",), "kctl/operations/kraft/voters.py": ("after",),
    "formats/log_dir/checkpoints.py": ("count",), "kctl/changes/journal.py": ("matching",), "kctl/report/answer.py": ("summary['moments']",),
}  # fmt: skip


def written_counts() -> Iterator[tuple[str, int, str, str]]:
    """The f-strings of kctl in which a plural follows a value: file, line, the value, and what follows."""
    for folder in ("kctl", "commands", "formats"):
        for path in (ROOT / folder).rglob("*.py"):
            for node in ast.walk(ast.parse(path.read_text())):
                if not isinstance(node, ast.JoinedStr):
                    continue
                for value, text in zip(node.values, node.values[1:], strict=False):
                    if not isinstance(value, ast.FormattedValue) or not isinstance(text, ast.Constant):
                        continue
                    if after := PLURAL.match(str(text.value)):
                        yield str(path.relative_to(ROOT)), node.lineno, ast.unparse(value.value), after[0]


@pytest.mark.slow
def test_no_sentence_counts_one_of_several() -> None:
    """`f"{n} lines"` is written `f"{counted(n, 'line')}"`."""
    wrong = [
        f"{file}:{line}: {{{value}}}{after}"
        for file, line, value, after in written_counts()
        if not (value.isupper() or any(part in value for part in ALWAYS_SEVERAL.get(file, ())))
    ]
    assert wrong == []


@pytest.mark.parametrize("number", [0, 1, 2, 1200])
def test_sentences_of_findings_are_sentences_for_any_count(number: int) -> None:
    for type_ in all_findings():
        for name in re.findall(r"\{(\w+):[a-z][^}]*[a-z|]\}", type_.sentence):
            slots = dict.fromkeys(re.findall(r"\{(\w+)[^}]*\}", type_.sentence), "x")
            counts = {slot: Counted(7) for slot in re.findall(r"\{(\w+):[^}]+\}", type_.sentence)}
            text = type_.sentence.format(**{**slots, **counts, name: Counted(number)})
            assert not re.search(
                r"\b1 (?:more |sound )?(?:lines|files|records|bytes|segments|objects|batches|entries)\b", text
            ), text


def test_counts() -> None:
    assert [counted(n, "line") for n in (0, 1, 2, 1200)] == ["0 lines", "1 line", "2 lines", "1,200 lines"]
    assert [counted(n, "entry", "entries") for n in (1, 2)] == ["1 entry", "2 entries"]
    one, two = Counted(1), Counted(2)
    assert f"{one:line} {one:was|were}, {two:entry/entries} {two:was|were}, {two:,} {one:>3}" == (
        "1 line was, 2 entries were, 2   1"
    )


def raised_by(act: Callable[[], object]) -> BaseException:
    with pytest.raises(Exception) as raised:
        act()
    return raised.value


@pytest.mark.parametrize(
    ("act", "words"),
    [
        (lambda: b"ab\xff".decode(), "it is not UTF-8 text: byte 0xff at position 2"),
        (lambda: b"\0\xd8".decode("utf-16"), "it is not UTF-16 text: byte 0x00 at position 0"),
        (lambda: "a\ud800".encode(), "the character U+D800 at position 1 is none of text"),
        (lambda: json.loads("[1,"), "expecting value, line 1 column 4"),
        (lambda: dict[str, int]()["name"], "it has no 'name'"),
        (lambda: int("12x"), "'12x' is not a number"),
        (lambda: float("12x"), "'12x' is not a number"),
        (lambda: [].get("x"), "a value is missing, or of another type than it should be"),  # type: ignore[attr-defined]
        (lambda: open("/no/such/file"), "no such file or directory"),  # noqa: SIM115
    ],
)
def test_what_python_says_is_said_in_other_words(act: Callable[[], object], words: str) -> None:
    assert reason_of(raised_by(act)) == words


def test_what_a_folder_holds_is_offered_where_a_path_is_not_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from tests.conftest import kctl

    for name in ("broker-1", "broker-2", "znodes.jsonl"):
        (tmp_path / name).touch()
    monkeypatch.chdir(tmp_path)
    said = kctl("segment", "verify", "evidence").err
    assert "the current folder holds broker-1, broker-2, znodes.jsonl" in said
    assert said.count("no such file") == 1 and "nothing is there" not in said
    assert "did you mean broker-2 or broker-1?" in kctl("segment", "verify", "broker-3").err
