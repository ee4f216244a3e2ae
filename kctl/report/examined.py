"""What was examined: the files with their digests, folded away."""

from kctl.audit.tables import Tables
from kctl.report.html import Html, count, element, size, table

SHOWN = 1000


def section(tables: Tables) -> Html | None:
    """The first files by name, and how many more the table `files` lists."""
    rows: list[list[object]] = []
    digest_name = "SHA-256"
    for row in tables.rows(
        "files", columns=["file", "broker_id", "size_in_bytes", "batches", "records", "sha256", "blake2b"]
    ):
        if len(rows) == SHOWN:
            break
        digest_name = "BLAKE2b" if row["blake2b"] else digest_name
        rows.append([element("code", row["file"]), row["broker_id"], size(row["size_in_bytes"]), row["batches"], row["records"],
                     element("code", row["sha256"] or row["blake2b"])])  # fmt: skip
    total = tables.count("files")
    if not total:
        return None
    rest = (
        element("p", f"The first {SHOWN:,}; the table `files` has all {total:,}.", class_="quiet")
        if total > SHOWN
        else None
    )
    file_table = table(
        ["file", "broker", "size", "batches", "records", digest_name], rows, numeric=frozenset({1, 2, 3, 4})
    )
    return element(
        "section",
        element("h2", "What was examined"),
        element("details", element("summary", count(total, "file")), file_table, rest, class_="bulk"),
        id="examined",
    )
