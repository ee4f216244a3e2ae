"""Every error says what to do next: in its own words, or in those of its class."""

import ast
import errno
import gc
import pickle
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from commands.cli.leaving import say_error
from kctl.cluster.names import unknown_partition, unknown_topics
from kctl.errors import BadValue, KctlError, file_error, near_names, near_path
from kctl.model import TopicPartition
from tests.conftest import HERE

ROOT = HERE.parent
FILES = sorted(path for folder in ("kctl", "commands") for path in (ROOT / folder).rglob("*.py"))


class ErrorClass(NamedTuple):
    """What the source says of a class of errors."""

    has_hint: bool
    place_of_hint: int | None  # among the arguments


def error_classes(trees: list[ast.Module]) -> dict[str, ErrorClass]:
    """`KctlError` and what is derived from it, by name."""
    classes = [node for tree in trees for node in ast.walk(tree) if isinstance(node, ast.ClassDef)]
    found = {"KctlError": ErrorClass(has_hint=False, place_of_hint=1)}
    while new := [
        node
        for node in classes
        if node.name not in found and any(isinstance(b, ast.Name) and b.id in found for b in node.bases)
    ]:
        for node in new:
            above = next(found[b.id] for b in node.bases if isinstance(b, ast.Name) and b.id in found)
            own = [a for a in node.body if isinstance(a, ast.Assign) and ast.unparse(a.targets[0]) == "hint"]
            has_hint = not may_be_empty(own[0].value) if own else above.has_hint
            place = above.place_of_hint
            for method in node.body:
                if isinstance(method, ast.FunctionDef) and method.name == "__init__":
                    names = [argument.arg for argument in method.args.args[1:]]
                    place = names.index("hint") if "hint" in names else None
            found[node.name] = ErrorClass(has_hint, place)
    return found


def constructions(tree: ast.AST, classes: dict[str, ErrorClass]) -> Iterator[ast.Call]:
    """The calls of error classes."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            name = node.func.id if isinstance(node.func, ast.Name) else getattr(node.func, "attr", "")
            if name in classes:
                yield node


def hint_of(call: ast.Call, kind: ErrorClass) -> ast.expr | None:
    """The argument that is the hint."""
    place = kind.place_of_hint
    named = next((keyword.value for keyword in call.keywords if keyword.arg == "hint"), None)
    if named is None and place is not None and len(call.args) > place:
        return call.args[place]
    return named


def may_be_empty(hint: ast.expr | None) -> bool:
    """Whether the hint is missing, or empty in some case."""
    match hint:
        case None:
            return True
        case ast.Constant(value=value):
            return not value
        case ast.IfExp(body=body, orelse=otherwise):
            return may_be_empty(body) or may_be_empty(otherwise)
    return False


def conditional_hints(tree: ast.AST) -> Iterator[ast.Assign]:
    """Assignments of a hint that is empty in some case."""
    functions = (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef))
    for node in (node for function in functions for node in ast.walk(function)):
        if (
            isinstance(node, ast.Assign)
            and any(isinstance(target, ast.Name) and target.id == "hint" for target in node.targets)
            and may_be_empty(node.value)
        ):
            yield node


def parsed(path: Path) -> ast.Module:
    """The tree of a module. What the collector runs meanwhile may upset Python 3.11's parser (gh-106905)."""
    gc.disable()
    try:
        return ast.parse(path.read_text(encoding="utf-8"))
    finally:
        gc.enable()


@pytest.mark.slow
def test_every_error_says_what_to_do_next() -> None:
    trees = {path: parsed(path) for path in FILES}
    classes = error_classes(list(trees.values()))
    silent, count = [], 0
    for path, tree in trees.items():
        name = str(path.relative_to(ROOT))
        for call in constructions(tree, classes):
            kind = classes[call.func.id if isinstance(call.func, ast.Name) else call.func.attr]  # type: ignore[attr-defined]
            count += 1
            if not kind.has_hint and may_be_empty(hint_of(call, kind)):
                silent.append(f"{name}:{call.lineno}: {ast.unparse(call)}")
        silent += [f"{name}:{node.lineno}: {ast.unparse(node)}" for node in conditional_hints(tree)]
    assert not silent, "\n".join(silent)
    assert count > 300, "few errors are looked at"


def test_an_error_takes_two_lines(capsys: pytest.CaptureFixture[str]) -> None:
    say_error(KctlError("orders-3: no such file", "check the path"))
    assert capsys.readouterr().err == "kctl: orders-3: no such file\n      check the path\n"
    say_error(ValueError("text\nof a library"))
    assert capsys.readouterr().err == "kctl: text\\nof a library\n"


def test_names_that_are_like_an_unknown_one() -> None:
    assert near_names("ordres", ["orders", "payments"], otherwise="") == "did you mean orders?"
    assert near_names("x", ["orders"], otherwise="see the list") == "see the list"
    error = unknown_topics(["ordres"], ["orders", "payments"])
    assert (error.message, error.hint) == ("no topic ordres", "did you mean orders?")
    assert unknown_topics(["b", "a"], ["orders"]).message == "no topic a, b"
    assert "`kctl topic list`" in unknown_topics(["b", "a"], ["orders"]).hint
    assert unknown_partition(TopicPartition("a", 7), [1, 0]).hint == "the partitions of a are 0, 1"


def test_errors_of_the_system_say_what_to_do() -> None:
    with pytest.raises(FileNotFoundError) as raised:
        Path("/nowhere/at/all").read_bytes()
    error = file_error("/nowhere/at/all", raised.value, BadValue)
    assert isinstance(error, BadValue)
    assert error.message == "/nowhere/at/all: no such file or directory"
    assert error.hint.startswith("there is no /nowhere; ")
    assert file_error("a", OSError(12345, "strange")).hint
    assert pickle.loads(pickle.dumps(error)).hint == error.hint


@pytest.mark.parametrize(
    ("path", "hint"),
    [
        ("orders-1/00000000000000000000.log", "did you mean orders-0? (in {folder})"),
        ("orders-0/0000000000000000000.log", "did you mean 00000000000000000000.log? (in {folder}/orders-0)"),
        ("payments-4", "{folder} holds orders-0"),
        ("orders-0/00000000000000000000.log/x", ""),
    ],
)
def test_a_path_that_is_not_there_gets_names_like_it(tmp_path: Path, path: str, hint: str) -> None:
    (tmp_path / "orders-0").mkdir()
    (tmp_path / "orders-0/00000000000000000000.log").touch()
    assert near_path(f"{tmp_path}/{path}") == hint.format(folder=tmp_path)


def test_a_relative_path_that_is_not_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "evidence").mkdir()
    assert near_path("evidnce/") == "did you mean evidence?"
    assert near_path("evidnce/broker-1") == "did you mean evidence?"
    assert (
        near_path("/nowhere/at/all")
        == "there is no /nowhere; a path from the current folder begins without /"
    )
    assert near_path("/vra/log") == "did you mean var? (in /)"
    assert near_path("") == ""


def test_a_link_to_nothing_and_an_empty_folder_are_named(tmp_path: Path) -> None:
    assert near_path(f"{tmp_path}/evidence") == f"{tmp_path} is empty"
    (tmp_path / "link").symlink_to("gone")
    assert near_path(f"{tmp_path}/link") == f"{tmp_path}/link is a link to gone, which is not there"


def test_a_file_too_large_to_read_is_not_one_too_large_to_write() -> None:
    held = OSError(errno.EFBIG, "holds 5 bytes, and such a file has at most 4", "a.snapshot")
    assert file_error("a.snapshot", held).hint == "it is damaged, or another file under this name"
    assert "ulimit -f" in (file_error("out", OSError(errno.EFBIG, "File too large")).hint or "")
