"""Long names on a terminal of 80 columns: every command that lists topics, groups or principals."""

import re
import shutil
from importlib import import_module
from pathlib import Path

import pytest

from commands.cli.render import Page, aligned
from kctl.rows import RowType
from tests.conftest import kctl

EXAMPLE = Path(__file__).parents[2] / "examples" / "unclean-election"
TOPIC = "com.example.payments.settlement.eu-west-1.ledger-entries-v2-compacted-dead-letters"
SNAPSHOT = "--snapshot moments/after/znodes.jsonl"
AFTER = "moments/after"


@pytest.fixture(scope="module")
def evidence(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The example, its topic with a name wider than the terminal."""
    folder = tmp_path_factory.mktemp("long-names")
    for path in sorted(EXAMPLE.rglob("*")):
        target = folder / re.sub(r"\bledger-(?=\d)", f"{TOPIC}-", str(path.relative_to(EXAMPLE)))
        if path.is_dir():
            target.mkdir()
        elif re.match(r"\d{20}\.", path.name):  # no name of a topic in it
            shutil.copyfile(path, target)
        else:
            target.write_bytes(re.sub(rb"\bledger\b", TOPIC.encode(), path.read_bytes()))
    return folder


@pytest.mark.parametrize(
    "words",
    [
        f"topic list {SNAPSHOT}",
        f"topic describe {SNAPSHOT}",
        f"elect status {SNAPSHOT}",
        f"cluster health {SNAPSHOT}",
        f"cluster predict --stop 1 {SNAPSHOT}",
        f"znode tree {SNAPSHOT}",
        f"reassign plan --drain 1 --to plan.json {SNAPSHOT}",
        f"checkpoint show {AFTER}/broker-1",
        f"epoch show {AFTER}",
        f"epoch compare {AFTER}",
        f"epoch end-offset {AFTER} --epoch 1",
        pytest.param("replica compare .", marks=pytest.mark.slow),
        pytest.param("replica loss .", marks=pytest.mark.slow),
        pytest.param("state-log timeline .", marks=pytest.mark.slow),
        pytest.param("segment verify .", marks=pytest.mark.slow),
        pytest.param("transactions hanging .", marks=pytest.mark.slow),
        pytest.param(f"log-dir start {AFTER}/broker-1", marks=pytest.mark.slow),
        pytest.param("audit run . --out ../long-names-report", marks=pytest.mark.slow),
        pytest.param("inventory .", marks=pytest.mark.slow),
    ],
)
def test_a_line_is_wider_than_the_terminal_only_for_a_name(
    evidence: Path, monkeypatch: pytest.MonkeyPatch, words: str
) -> None:
    monkeypatch.chdir(evidence)
    said = kctl(*words.split(), "--quiet", columns=80).out.decode()
    lines = [re.sub(r"\x1b\[[0-9;]*m", "", line) for line in said.splitlines()]
    assert lines
    wide = [line for line in lines if len(line) > 80 and not line.startswith("next ")]
    # A name that has its own line can be copied; nothing else is in such a line but what belongs to it.
    assert [line for line in wide if len(re.sub(rf"\S*{re.escape(TOPIC)}\S*", "", line).split()) > 1] == []


NAMES = "com.example.payments-settlement", "User:CN=billing,OU=payments,O=Example Corp,L=Berlin,C=DE"
ROWS = [
    row_type
    for module in sorted(
        path.stem for path in (Path(__file__).parents[2] / "kctl" / "rows").glob("[a-z]*.py")
    )
    for row_type in vars(import_module(f"kctl.rows.{module}")).values()
    if isinstance(row_type, RowType)
]


@pytest.mark.parametrize("row_type", ROWS, ids=lambda row_type: row_type.kind)
def test_tables_of_every_kind_fold_names_and_no_numbers(row_type: RowType) -> None:
    values: dict[str, object] = {}
    for number, (name, field) in enumerate(row_type.fields.items()):
        if "integer" in field.types:
            values[name] = 1234567
        elif "string" in field.types:
            values[name] = max(field.choices, key=len, default=NAMES[number % 2])
    rows = [row_type(**values)] * 2
    lines = list(aligned(rows, Page(80, color=False)))
    assert max(map(len, lines), default=0) <= 80
    assert "\n".join(lines).count("1234567") == 2 * sum(value == 1234567 for value in values.values())


def test_a_first_column_on_lines_of_its_own_takes_no_room_from_the_others() -> None:
    user = "CN=billing," * 10
    keys = ("consumer_byte_rate", "request_percentage", "producer_byte_rate")
    rows: list[dict[str, object]] = [
        {
            "kind": "quota",
            "user": name,
            "client_id": client,
            "key": key,
            "value": 1048576,
            "source": "user and client-id",
        }
        for name, client, key in zip((None, user, user), ("client." * 20, None, "app"), keys, strict=True)
    ]
    lines = list(aligned(rows, Page(80, color=False)))
    assert all(sum(key in line for line in lines) == 1 for key in keys), "only the widest column is folded"
    assert [line for line in lines if len(line) > 80] == [user, user]
