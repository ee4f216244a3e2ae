"""`kctl doctor`: what is set and from where, and whether this machine is set up."""

from collections.abc import Iterable, Iterator

from commands.frame import Frame, command
from commands.render import Outcome, Page, Row

STYLE_OF = {"ok": "good", "slow": "warning", "missing": "warning", "wrong": "error"}


@command(
    "doctor",
    examples="""
    kctl doctor
    kctl doctor --output jsonl | jq 'select(.state != "ok")'
    """,
    status="0 all that kctl needs is in order · 5 something it needs is not (extras that are missing are 0)",
)
def doctor(frame: Frame) -> Outcome:
    """Say what is set, from where, and whether codecs, CRC, Java and Spark are in order."""
    from kctl.doctor import machine_checks, settings_in_force
    from kctl.rows.house import CHECK, SETTING

    rows: list[Row] = [
        SETTING(name=one.name, value=one.value, origin=one.origin)
        for one in settings_in_force(frame.given, frame.origins)
    ]
    for check in machine_checks():
        rows.append(CHECK(name=check.name, state=check.state, detail=check.detail, advice=check.advice))
        if check.state == "wrong":
            frame.raise_status(5)
    return Outcome(rows, text=laid_out)


def laid_out(rows: Iterable[Row], page: Page) -> Iterator[str]:
    """Settings, then checks."""
    for row in rows:
        if row["kind"] == "setting":
            yield f"{row['name']:<20} {row['value'] or '(none)'}  {page.style('from ' + str(row['origin']), 'dim')}"
        else:
            state = page.style(f"{row['state']:<8}", STYLE_OF[str(row["state"])])
            yield f"{state} {row['name']:<16} {row['detail']}"
            if row["advice"]:
                yield f"{'':<25} {row['advice']}"
