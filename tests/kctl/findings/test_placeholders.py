"""Every placeholder of the table is one that a message fills, and every place that reports a finding fills them all."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from importlib import import_module
from string import Formatter
from typing import NamedTuple

import pytest

from kctl.findings import FindingType, Severity, all_findings, error
from tests.test_structure import modules

# Methods that make a finding of a row and the details given; others keep the row, and give them elsewhere.
REPORTING = {"at", "_at", "say"}
NO_DETAILS = {"severity", "place"}


def placeholders(text: str) -> set[str]:
    return {name for _, name, _, _ in Formatter().parse(text) if name is not None}


class Site(NamedTuple):
    """A call that reports a finding; `missing` is empty where it also passes a whole mapping."""

    where: str
    row: FindingType
    missing: set[str]
    unknown: set[str]


def sites(module: str, text: str) -> Iterator[Site]:
    """The calls in a file whose row is named where it is reported, and not chosen elsewhere."""
    tree = ast.parse(text)
    names = _findings_imported(tree)
    for call in ast.walk(tree):
        if not (isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute)):
            continue
        row = next((r for r in (_row(one, names) for one in (call.func.value, *call.args)) if r), None)
        if row is None or call.func.attr not in REPORTING:
            continue
        given = {keyword.arg for keyword in call.keywords}
        stated = placeholders(row.sentence)
        yield Site(
            f"{module}:{call.lineno} {row.code}",
            row,
            set() if None in given else stated - given,
            {str(name) for name in given - stated - NO_DETAILS - {None}},
        )


def _findings_imported(tree: ast.Module) -> dict[str, object]:
    """What a file calls the rows, and the modules of rows, that it imports."""
    found: dict[str, object] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and str(node.module).startswith("kctl.findings"):
            module = import_module(str(node.module))
            for alias in node.names:
                if not hasattr(module, alias.name):
                    import_module(f"{node.module}.{alias.name}")
                found[alias.asname or alias.name] = getattr(module, alias.name)
    return found


def _row(node: ast.expr, names: Mapping[str, object]) -> FindingType | None:
    if isinstance(node, ast.Name):
        found = names.get(node.id)
    elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
        found = getattr(names.get(node.value.id), node.attr, None)
    else:
        return None
    return found if isinstance(found, FindingType) else None


@pytest.mark.parametrize("row", list(all_findings()), ids=lambda row: row.code)
def test_only_the_sentence_is_a_template(row: FindingType) -> None:
    assert all(name.isidentifier() for name in placeholders(row.sentence))
    assert "severity" not in placeholders(row.sentence), "`at` keeps it for itself"
    assert not placeholders(row.meaning + row.cause + row.action), "these are printed as they stand"


def test_a_row_without_all_its_lines_is_named() -> None:
    with pytest.raises(ValueError, match="made-up has 3 lines"):
        error("made-up\n    A sentence.\n    Its meaning.")


@pytest.mark.slow
def test_every_finding_that_is_reported_has_what_its_sentence_says() -> None:
    found = [site for module, text in modules().items() for site in sites(module, text)]
    seen = {site.row.code for site in found}
    assert 4 * len(seen) > 3 * len(list(all_findings())), "most rows are named where they are reported"
    assert [(site.where, "misses", site.missing) for site in found if site.missing] == []
    assert [(site.where, "has no place for", site.unknown) for site in found if site.unknown] == []


def test_a_detail_too_few_and_one_too_many_are_seen() -> None:
    text = "from kctl.findings import live as say\ndef f(place):\n    return say.REPLICA_UNREACHABLE.at(place, other=1)\n"
    (site,) = sites("a", text)
    assert site.row.severity in Severity
    assert site.missing == placeholders(site.row.sentence) != set()
    assert site.unknown == {"other"}
