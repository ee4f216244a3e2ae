"""The site: it builds without a warning, every link of it leads somewhere, and nothing is loaded from another host."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

from commands.catalogue import COMMANDS
from kctl.findings import all_findings
from tests.conftest import HERE

ROOT = HERE.parent
pytestmark = pytest.mark.xdist_group("site")  # built once
# What a browser fetches by itself, as opposed to what a reader may click.
FETCHED = {"script": "src", "img": "src", "iframe": "src", "link": "href", "source": "src"}
NOT_FETCHED = {"canonical", "next", "prev", "alternate"}


class Page(HTMLParser):
    """Links, resources and anchors of a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.links: list[str] = []
        self.fetched: list[str] = []
        self.anchors: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = dict(attrs)
        self.anchors.update(filter(None, (found.get("id"), found.get("name"))))
        if tag == "a" and found.get("href"):
            self.links.append(str(found["href"]))
        elif tag in FETCHED and found.get(FETCHED[tag]) and found.get("rel") not in NOT_FETCHED:
            self.fetched.append(str(found[FETCHED[tag]]))


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("material", reason="MkDocs Material is not installed")
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", folder]
    ran = subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, env={**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    return folder


@pytest.mark.slow
def test_every_link_leads_somewhere_and_nothing_is_fetched_elsewhere(site: Path) -> None:
    pages = {path: Page(path.read_text("utf-8")) for path in site.rglob("*.html") if path.name != "404.html"}
    assert len(pages) > 80
    wrong = []
    for path, page in pages.items():
        for link in page.links + page.fetched:
            parts = urlsplit(link)
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            if parts.scheme:
                wrong += (
                    [f"{path}: fetches {link}"] if link in page.fetched and parts.scheme != "data" else []
                )
            elif not target.is_file():
                wrong.append(f"{path}: {link} is not there")
            elif parts.fragment and target in pages and unquote(parts.fragment) not in pages[target].anchors:
                wrong.append(f"{path}: {link} has no such place")
    assert not wrong, "\n".join(wrong[:20])
    for style in site.rglob("*.css"):
        assert not re.search(r"url\(['\"]?(https?:)?//|@import", style.read_text("utf-8")), style


@pytest.mark.slow
def test_the_reference_is_whole(site: Path) -> None:
    said = "".join(path.read_text("utf-8") for path in (site / "reference" / "findings").glob("*.html"))
    assert [one.code for one in all_findings() if f'id="{one.code}"' not in said] == []
    assert {path.stem for path in (site / "reference" / "commands").glob("*.html")} == {"index", *COMMANDS}
    for name in COMMANDS:
        text = (site / "reference" / "commands" / f"{name}.html").read_text("utf-8")
        assert "Exit status" in text and "--output" in (site / "reference/commands/index.html").read_text(
            "utf-8"
        )


@pytest.mark.slow
def test_tables_show_signs_as_they_are(site: Path) -> None:
    """A star that marks a version is no emphasis, and choices have no backslashes between them."""
    versions = (
        (site / "compatibility.html").read_text("utf-8").partition("<table>")[2].partition("</table>")[0]
    )
    assert "*" in versions and "<em>" not in versions
    assert "[log|index|timeindex|" in (site / "reference" / "commands" / "segment.html").read_text("utf-8")
    for path in site.rglob("*.html"):
        assert not re.search(r"<td>[^\n]*\\\|", path.read_text("utf-8")), path
