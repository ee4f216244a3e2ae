"""`kctl doctor`: the settings in force, and checks of this machine."""

from collections.abc import Iterable, Iterator
from functools import partial

from commands.cli.frame import Frame, command
from commands.cli.render import Outcome, Page, Row, folding

STYLE_OF = {"ok": "good", "slow": "warning", "missing": "warning", "wrong": "error"}


@command("doctor", status="0 all requirements are met · 5 a requirement is not met (missing extras give 0)")
def doctor(frame: Frame) -> Outcome:
    """Show settings and their origin, and check codecs, CRC, Java and Spark.

    $ kctl doctor
    $ kctl doctor --output jsonl | jq 'select(.state != "ok")'
    """
    from kctl.doctor import machine_checks, settings_in_force
    from kctl.rows.house import CHECK, SETTING

    rows: list[Row] = [SETTING.of(setting) for setting in settings_in_force(frame.given, frame.origins)]
    for check in machine_checks():
        rows.append(CHECK.of(check))
        if check.state == "wrong":
            frame.raise_status(5)
    return Outcome(rows, text=folding(partial(doctor_text, is_verbose=bool(frame.verbose))))


def doctor_text(rows: Iterable[Row], page: Page, *, is_verbose: bool) -> Iterator[str]:
    """Settings, then checks; what kctl sets for Spark only with -v. The last line says what is not there."""
    wrong, missing = [], []
    for row in rows:
        if row["kind"] == "check":
            wrong += [str(row["name"])] if row["state"] == "wrong" else []
            missing += [str(row["name"])] if row["state"] == "missing" else []
        if row["kind"] == "check" and row["name"] == "spark setting" and not is_verbose:
            continue
        if row["kind"] == "setting":
            yield f"{row['name']:<20} {row['value'] or '(none)'}  {page.style('from ' + str(row['origin']), 'dim')}"
        else:
            state = page.style(f"{row['state']:<8}", STYLE_OF[str(row["state"])])
            yield f"{state} {row['name']:<16} {row['detail']}"
            if row["advice"]:
                yield f"{'':<25} {row['advice']}"
    yield ""
    words = [*(f"{name} is wrong" for name in wrong), *(f"{name} is missing" for name in missing)]
    ready = "not ready" if wrong else "ready"
    yield page.style("; ".join([ready, *words]), "error" if wrong else "warning" if missing else "good")
