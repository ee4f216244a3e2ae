"""The page: which sections it has, in which order, and the frame around them."""

from base64 import b64encode
from hashlib import sha256
from importlib.resources import files

from kctl.audit.tables import Tables
from kctl.report import examined, remote, timeline
from kctl.report.answer import answer_of, answer_section
from kctl.report.findings import findings_section
from kctl.report.html import Html, element, join, link
from kctl.report.incidents import incidents
from kctl.report.lineage import patterns
from kctl.report.partitions import partitions_section
from kctl.version import __version__

CONTENTS = {
    "findings": "What happened", "partitions": "Partitions with something wrong", "leaders": "Who led when",
    "tier": "Tiered storage", "index": "Index of partitions", "examined": "What was examined",
}  # fmt: skip


def render(tables: Tables) -> str:
    """The whole report as one HTML document: style and script inside, nothing fetched from anywhere.

    The script searches and zooms; without it everything can be read. A policy in the head keeps the browser from
    any request and from any other script.
    """
    style, script = (
        files("kctl.report").joinpath(name).read_text("utf-8") for name in ("report.css", "report.js")
    )
    causes = incidents(tables)
    answer = answer_of(tables, causes)
    below = join([
        section
        for section in (
            findings_section(tables, causes), partitions_section(tables), timeline.section(tables),
            remote.section(tables), examined.section(tables),
        )
        if section is not None
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
