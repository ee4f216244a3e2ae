"""The top of the report: the verdict in one sentence, four numbers, what was examined and when."""

from kctl.audit.tables import Tables
from kctl.report.html import Html, count, element, size


def section(tables: Tables) -> Html:
    """Heading, verdict and numbers."""
    said = tables.summary
    severity = "error" if said["errors"] else "warning" if said["warnings"] else "good"
    numbers = [
        (f"{said['errors']:,}", "errors"),
        (f"{said['warnings']:,}", "warnings"),
        ("unknown" if said["lost_records"] is None else f"{said['lost_records']:,}", "records lost"),
        (f"{said['partitions']:,}", "partitions"),
    ]
    brokers = ", ".join(map(str, said["brokers"])) or "unknown"
    moments = (
        f"; copies of {len(said['moments'])} moments: {', '.join(said['moments'])}" if said["moments"] else ""
    )
    return element(
        "section",
        element("h1", "Audit of ", element("code", said["evidence"])),
        element("p", said["verdict"], class_=f"verdict {severity}"),
        element(
            "div",
            *(element("div", element("b", number), element("span", name)) for number, name in numbers),
            class_="numbers",
        ),
        element(
            "p",
            f"Brokers {brokers}{moments}. {count(said['files'], 'file')}, {size(said['bytes'])}, "
            f"{count(said['batches'], 'batch', 'batches')} and {count(said['records'], 'record')} examined "
            f"from {said['started']} in {said['seconds']:,.1f} s.",
            class_="quiet",
        ),
    )
