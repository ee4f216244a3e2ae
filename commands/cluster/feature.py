"""`kctl feature`: list, upgrade, downgrade."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

import click

from commands.cli.changing import CHANGE_STATUS, How, carry_out, changes
from commands.cli.connecting import At, open_for_change, reads
from commands.cli.frame import Frame, command
from commands.cli.options import flag
from commands.cli.render import Outcome, Page, Row, folding, table
from formats.values import replace
from formats.whole_numbers import whole_number
from kctl.errors import BadValue


def list_text(rows: Iterable[Row], page: Page) -> Iterator[str]:
    """Features in columns, then what each proposal adds."""
    listed = list(rows)
    yield from table(
        [
            {
                "feature": row["name"],
                "level": row["finalized_level"],
                "supported": None
                if row["maximum_level"] is None
                else f"{row['minimum_level']}-{row['maximum_level']}",
                "proposed": row["proposed_level"],
                "": "no way back" if row["is_reversible"] is False else None,
            }
            for row in listed
        ],
        page,
    )
    for row in listed:
        if row["proposed_level"] is not None and isinstance(row["adds"], list):
            yield page.style(f"{row['name']}={row['proposed_level']} adds", "bold")
            yield from (f"  {line}" for line in row["adds"])


@command("list", paged=True, status="0 done · 3 failed")
@reads
def list_features(frame: Frame, at: At) -> Outcome:
    """List features: levels in force and supported, and what an upgrade adds.

    Shows the levels that every answering broker supports. Controllers are asked when a level is set.

    $ kctl feature list
    $ kctl feature list --output jsonl
    """
    from kctl.cluster.interface import NoQuorum
    from kctl.operations.kraft.features import features_of
    from kctl.rows.kraft import FEATURE_LEVELS

    with at.open(frame) as cluster:
        state = cluster.read_state((), partition_states=False, kafka_version=at.version)
        if state.quorum is None and state.not_quorum is None:
            raise NoQuorum()
        ranges, failures = cluster.supported_features()
    for failure in failures:
        frame.report(failure)
    return Outcome(
        (FEATURE_LEVELS.of(feature) for feature in features_of(state, ranges)), text=folding(list_text)
    )


def _levels(
    frame: Frame, how: How, texts: tuple[str, ...], *, is_downgrade: bool, needs: str = ""
) -> Outcome:
    from kctl.operations.kraft.features import plan_levels

    levels: dict[str, int] = {}
    for text in texts:
        name, _, level = text.partition("=")
        number = whole_number(level)
        if not name or number is None or number > 32767:
            raise BadValue(f"{text!r} is not NAME=LEVEL", "write metadata.version=30")
        levels[name] = number
    with open_for_change(frame) as cluster:
        state = cluster.read_state((), partition_states=False, kafka_version=how.version)
        plan = plan_levels(cluster, state, levels, is_downgrade=is_downgrade)
        return carry_out(frame, how, cluster, replace(plan, needs=needs))


LEVELS: Callable[[Callable[..., Outcome]], Callable[..., Outcome]] = click.argument(
    "levels", nargs=-1, required=True, metavar="NAME=LEVEL..."
)


@command("upgrade", status=CHANGE_STATUS)
@changes(timeout=60)
@LEVELS
def upgrade(frame: Frame, how: How, levels: tuple[str, ...]) -> Outcome:
    """Raise the levels of features.

    The controller first checks that all nodes support the levels. The confirmation names every level that cannot be
    lowered again; `kctl feature list` shows what each level adds.

    $ kctl feature upgrade metadata.version=30 --dry-run
    $ kctl feature upgrade group.version=1 transaction.version=2
    """
    return _levels(frame, how, levels, is_downgrade=False)


@command("downgrade", status=CHANGE_STATUS)
@changes(timeout=60)
@LEVELS
@flag("--accept-downgrade", "Accept the loss of what the higher levels added.")
def downgrade(frame: Frame, how: How, levels: tuple[str, ...], accept_downgrade: bool) -> Outcome:
    """Lower the levels of features.

    The controller is asked first; it refuses a downgrade that loses metadata.

    $ kctl feature downgrade group.version=0 --dry-run
    $ kctl feature downgrade group.version=0 --accept-downgrade
    """
    needs = "" if accept_downgrade else "--accept-downgrade"
    return _levels(frame, how, levels, is_downgrade=True, needs=needs)
