"""The page: its sections, their order, and the frame around them."""

from base64 import b64encode
from hashlib import sha256
from itertools import islice
from pathlib import Path

from formats.words import counted
from kctl.audit.tables import Tables, write_file
from kctl.report import remote, timeline
from kctl.report.answer import answer_of, answer_section
from kctl.report.findings import findings_section
from kctl.report.html import Html, element, join, link, size, table
from kctl.report.incidents import incidents
from kctl.report.lineage import patterns
from kctl.report.partitions import partitions_section
from kctl.version import __version__

CONTENTS = {
    "findings": "What happened", "partitions": "Partitions with something wrong", "leaders": "Who led when",
    "tier": "Tiered storage", "index": "Index of partitions", "examined": "What was examined",
}  # fmt: skip


MOST_FILES = 1000  # in the section of what was examined


def write_report(folder: Path) -> Path:
    """Write the page of the tables in a folder beside them; gives its path."""
    path = folder / "report.html"
    write_file(path, render(Tables(folder)))
    return path


def render(tables: Tables) -> str:
    """The whole report as one HTML document: style and script inside, nothing fetched from anywhere.

    The script searches and zooms; everything can be read without it. A policy in the head forbids the browser any request
    and any other script.
    """
    style, script = (
        Path(__file__).with_name(name).read_text("utf-8") for name in ("report.css", "report.js")
    )
    causes = incidents(tables)
    answer = answer_of(tables, causes)
    below = join([
        findings_section(tables, causes), partitions_section(tables), timeline.section(tables),
        remote.section(tables), _examined(tables),
    ])  # fmt: skip
    links = [link(anchor, title) for anchor, title in CONTENTS.items() if f' id="{anchor}"' in below]
    contents = element(
        "nav",
        *(element("span", anchor_link) for anchor_link in links),
        element("label", "Search ", element("input", type="search", id="search"), hidden="hidden"),
        aria_label="Contents",
    )
    digest = b64encode(sha256(script.encode()).digest()).decode()
    policy = f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{digest}'"
    head = element(
        "head",
        element("meta", charset="utf-8"),
        element("meta", name_="viewport", content="width=device-width, initial-scale=1"),
        element("meta", name_="color-scheme", content="light dark"),
        element("meta", http_equiv="Content-Security-Policy", content=policy),
        element("title", f"kctl audit: {answer.sentences[0]}"),
        element("style", Html(style)),
    )
    footer = element("p", f"Made by kctl {__version__} from {tables.summary['evidence']}", class_="quiet")
    main = element("main", answer_section(tables, answer), contents, below)
    body = element("body", patterns(), main, element("footer", footer), element("script", Html(script)))
    return f"<!DOCTYPE html>\n{element('html', head, body, lang='en')}\n"


def _examined(tables: Tables) -> Html | None:
    """The first files by name, and how many more the table `files` has; None without files."""
    rows: list[list[object]] = []
    digest_name = "SHA-256"
    columns = ["file", "broker_id", "size_in_bytes", "batches", "records", "sha256", "blake2b"]
    for row in islice(tables.rows("files", columns=columns), MOST_FILES):
        digest_name = "BLAKE2b" if row["blake2b"] else digest_name
        rows.append([element("code", row["file"]), row["broker_id"], size(row["size_in_bytes"]), row["batches"], row["records"],
                     element("code", row["sha256"] or row["blake2b"])])  # fmt: skip
    total = tables.count("files")
    if not total:
        return None
    text = f"The first {MOST_FILES:,}; the table `files` has all {total:,}."
    header = ["file", "broker", "size", "batches", "records", digest_name]
    return element(
        "section",
        element("h2", "What was examined"),
        element(
            "details", element("summary", counted(total, "file")), table(header, rows, frozenset({1, 2, 3, 4})),
            element("p", text, class_="quiet") if total > MOST_FILES else None, class_="bulk",
        ),
        id="examined",
    )  # fmt: skip
