"""`kctl help`: what people say finds the commands that answer it, and each of these is one."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

from commands.about.questions import answers, questions
from commands.catalogue import COMMANDS as COMMANDS_BY_NAME
from commands.catalogue import Group, verb_of
from commands.main import load
from docs.making import questions as page
from tests.conftest import HERE, kctl, rows

QUESTIONS = list(questions())
COMMANDS = sorted({line for question in QUESTIONS for line, _ in question.commands})
RUNBOOKS = {path.stem for path in (HERE.parent / "docs" / "runbooks").glob("*.md")}


def test_there_are_forty_questions_and_every_runbook_is_named() -> None:
    assert len(QUESTIONS) >= 40
    assert all(question.commands and len(question.words) > 1 for question in QUESTIONS)
    named = {question.runbook for question in QUESTIONS if question.runbook}
    assert named <= RUNBOOKS
    assert RUNBOOKS - named == {"connect-to-a-secured-cluster", "which-object-holds-offset"}


@pytest.mark.parametrize("line", COMMANDS)
def test_each_command_is_one(line: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its verb, its options and the values of these are taken; what it names need not be there."""
    words = shlex.split(line)
    verb = verb_of(words[1:])
    assert words[0] == "kctl" and verb is not None, line
    is_of_group = isinstance(group := COMMANDS_BY_NAME[words[1]], Group) and words[2] in group.verbs
    monkeypatch.chdir(tmp_path)
    assert load(verb).make_context("kctl", words[3 if is_of_group else 2 :]).params


@pytest.mark.parametrize(
    ("said", "title"),
    [
        ("disk full", "a disk is full"),
        ("No space left on device", "a disk is full"),
        ("consumer stuck", "a consumer is stuck"),
        ("replica never joins", "replica never joins the ISR"),
        ("who deleted my topic", "who deleted my topic"),
        ("NotEnoughReplicasException", "not enough replicas"),
        ("lost messages", "messages are gone"),
        ("broker won't start", "a broker does not start"),
        ("reset a consumer group to the beginning", "reset offsets"),
        ("TopicAuthorizationException", "access is denied"),
        ("unclean election", "unclean leader election"),
        ("rebuild index", "an index is corrupt"),
        ("rolling restart", "restart all brokers"),
        ("undo reassignment", "undo a change"),
    ],
)
def test_what_people_say(said: str, title: str) -> None:
    assert title in [question.words[0] for question in answers(said)][:2]


@pytest.mark.slow
def test_every_question_finds_itself_by_each_of_its_words() -> None:
    for question in QUESTIONS:
        for said in question.words:
            assert question in answers(said), f"{said!r} does not find {question.words[0]!r}"


def test_words_that_no_question_has() -> None:
    ran = kctl("help", "xyzzy")
    assert ran.status == 2 and "no question has the words 'xyzzy'" in ran.err
    assert len(rows("help").of("answer")) == len(QUESTIONS)
    assert "kctl cluster disks" in kctl("help", "disk", "full", columns=80).out.decode()


def test_the_page_has_them_all() -> None:
    """`python -m docs.making.questions` writes it."""
    assert page.PAGE.read_text(encoding="utf-8") == page.written()
