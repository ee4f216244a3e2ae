"""The page: which sections it has, in which order, and the frame around them."""

from collections.abc import Callable
from importlib.resources import files

from kctl import __version__
from kctl.audit.tables import Tables
from kctl.report import examined, findings, partitions, remote, timeline, verdict
from kctl.report.html import Html, element, join

# Each section is a function from the audit's tables to markup, or None where it has nothing to show.
SECTIONS: tuple[Callable[[Tables], Html | None], ...] = (
    verdict.section,
    findings.section,
    partitions.section,
    timeline.section,
    remote.section,
    examined.section,
)


def render(tables: Tables) -> str:
    """The whole report as one HTML document, its style inside, nothing fetched from anywhere."""
    style = files("kctl.report").joinpath("report.css").read_text(encoding="utf-8")
    body = join([section for make in SECTIONS if (section := make(tables)) is not None])
    head = element(
        "head",
        Html('<meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">'),
        Html('<meta name="color-scheme" content="light dark">'),
        element("title", f"kctl audit: {tables.summary['verdict']}"),
        element("style", Html(style)),
    )
    made = element("p", f"Made by kctl {__version__} from {tables.summary['evidence']}", class_="quiet")
    return (
        "<!DOCTYPE html>\n"
        + element("html", head, element("body", element("main", body), element("footer", made)), lang="en")
        + "\n"
    )
