"""Evidence on real servers of each protocol: the audit of a folder, and no wrong row whatever the store does."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from kctl.audit.tables import Tables
from kctl.stores.mirror import MIRRORS
from tests.audit_rows import table_rows
from tests.conftest import Ran, recording, rows
from tests.stores.servers import AZURITE_KEY, SECRET, STORES, Proxy, Store, proxy, put

pytestmark = pytest.mark.matrix
LOG = "broker-1/data/stock-0/00000000000000000000.log"
NOT_FOR_ANYONE = (SECRET, AZURITE_KEY, "Signature=", "sig=")


class Rig(NamedTuple):
    """A store with an incident below `dark`, the same in a folder, and the proxy before it."""

    store: Store
    folder: Path
    between: Proxy

    @property
    def url(self) -> str:
        return f"{self.store.url}/dark"


@pytest.fixture(scope="module", params=list(STORES))
def rig(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Rig]:
    name, folder = request.param, tmp_path_factory.mktemp("store")
    dark = folder / "dark"
    shutil.copytree(recording("incidents/diverge-2.8") / "moments" / "dark", dark)
    with pytest.MonkeyPatch.context() as patch, STORES[name](folder) as store:
        for key, value in store.environment(store.port).items():
            patch.setenv(key, value)
        put(store, dark, "dark")
        with proxy(store.port) as between:
            for key, value in store.environment(between.port).items():
                patch.setenv(key, value)
            yield Rig(store, dark, between)


@pytest.fixture
def between(rig: Rig) -> Iterator[Proxy]:
    """The proxy, which passes everything on again behind the test."""
    rig.between.harm()
    yield rig.between
    rig.between.harm()


@pytest.fixture(autouse=True)
def forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(MIRRORS, "")


def audit(where: object, out: Path) -> Ran:
    ran = rows("audit", "run", where, "--out", out, "--jobs", 1)
    said = ran.err + ran.out.decode() + "".join(path.read_text() for path in out.glob("*.*"))
    assert not [word for word in NOT_FOR_ANYONE if word in said]
    assert "kctl-store-" not in said and "Traceback" not in said
    return ran


def test_an_audit_of_a_url_is_that_of_a_folder(rig: Rig, tmp_path: Path) -> None:
    remote, local = audit(rig.url, tmp_path / "remote"), audit(rig.folder, tmp_path / "local")
    assert remote.err == local.err and remote.status == local.status
    names = Tables(tmp_path / "local").names()
    assert names == Tables(tmp_path / "remote").names() and len(names) > 15
    for name in names:
        assert table_rows(tmp_path / "remote", name) == table_rows(tmp_path / "local", name), name


PASSING: dict[str, dict[str, Any]] = {
    "errors": {"status": 500, "times": 2}, "throttled": {"status": 503, "times": 1},
    "reset": {"reset": True, "times": 1}, "cut": {"cut": 100, "times": 1}, "slow": {"delay": 2, "times": 2},
    "piecemeal": {"pace": 0.2, "times": 4},
}  # fmt: skip


@pytest.mark.parametrize("harm", PASSING)
def test_what_passes_is_borne(rig: Rig, between: Proxy, harm: str) -> None:
    """The same rows; or, where a client does not ask again, a finding or an error, and nothing wrong."""
    between.harm({"match": r"^GET .*stock-0.*\.log", **PASSING[harm]})
    remote, local = (rows("segment", "verify", where, "--jobs", 1) for where in (rig.url, rig.folder))
    assert between.harm()
    no_wrong_rows(remote, local)


STAYING: dict[str, tuple[dict[str, Any], str]] = {
    "errors": ({"status": 500}, ""), "denied": ({"status": 403, "body": "<Error><Code>AccessDenied</Code></Error>"}, ""),
    "gone": ({"status": 404}, ""), "cut": ({"cut": 100}, ""), "reset": ({"reset": True}, ""),
    "expired": ({"status": 400, "body": "<Error><Code>ExpiredToken</Code><Message>The provided token has expired.</Message></Error>"}, ""),
}  # fmt: skip


@pytest.mark.parametrize("harm", STAYING)
def test_what_stays_is_a_finding(rig: Rig, between: Proxy, harm: str) -> None:
    between.harm({"match": rf"^(GET|HEAD) .*{name_in_requests(LOG)}", **STAYING[harm][0]})
    remote, local = (rows("segment", "verify", where, "--jobs", 1) for where in (rig.url, rig.folder))
    assert between.harm()
    assert no_wrong_rows(remote, local), remote.rows


CHANGE = """
import sys
from kctl.stores.file_systems import file_system
files, path = file_system(sys.argv[1])
if sys.argv[2] == "delete":
    files.delete_file(path)
else:
    with files.open_input_file(path) as file:
        data = file.read()
    data = {"shorter": data[:1000], "longer": data + data, "other": bytes(len(data))}[sys.argv[2]]
    with files.open_output_stream(path) as file:
        file.write(data)
"""


@pytest.mark.parametrize("change", ["delete", "shorter", "longer", "other"])
def test_an_object_that_changes_meanwhile_is_a_finding(
    rig: Rig, between: Proxy, change: str, tmp_path: Path
) -> None:
    """It is changed behind the proxy, as soon as kctl asks for it."""
    import json
    import os

    around = {**os.environ, **rig.store.environment(rig.store.port), "PYTHONPATH": os.pathsep.join(sys.path)}
    (tmp_path / "environment.json").write_text(json.dumps(around))
    url = f"{rig.store.url}/dark/{LOG}"
    program = f"import json, os; os.environ.update(json.load(open({str(tmp_path / 'environment.json')!r})))\n{CHANGE}"
    run = [sys.executable, "-c", program, url, change]
    between.harm({"match": rf"^(GET|HEAD) .*{name_in_requests(LOG)}", "times": 1, "run": run})
    try:
        remote, local = (rows("segment", "verify", where, "--jobs", 1) for where in (rig.url, rig.folder))
    finally:
        for name, value in rig.store.environment(rig.store.port).items():
            os.environ[name] = value
        put(rig.store, rig.folder, "dark")
        for name, value in rig.store.environment(between.port).items():
            os.environ[name] = value
    assert no_wrong_rows(remote, local), remote.rows


def test_no_listing_is_one_line(rig: Rig, between: Proxy) -> None:
    for harm in ({"status": 403}, {"status": 500}, {"reset": True}):
        between.harm({"match": r"^(GET|HEAD) ", **harm})
        ran = rows("segment", "verify", rig.url)
        assert ran.status == 3 and not ran.rows and len(ran.errors) == 1, ran
        assert rig.url in ran.err and "Traceback" not in ran.err


def name_in_requests(key: str) -> str:
    """A key in an address, whose slashes some clients escape."""
    return key.replace("/", "(/|%2F)").replace(".", r"\.")


def told(row: dict[str, Any]) -> str:
    return str({k: v for k, v in row.items() if k != "seconds"})


def no_wrong_rows(remote: Ran, local: Ran) -> bool:
    """Whether anything is said to be unread; every other finding is one of the folder as well."""
    said = remote.err + remote.out.decode()
    assert not [word for word in NOT_FOR_ANYONE if word in said]
    assert "Traceback" not in said
    unread = [
        row for row in remote.of("finding") if row["code"] in ("evidence-unreadable", "evidence-vanished")
    ]
    known = {told(row) for row in local.of("finding")}
    others = [row for row in remote.of("finding") if row not in unread and told(row) not in known]
    if unread or remote.errors:
        hurt = {(row["broker_id"], row["topic"], row["partition"]) for row in unread}
        assert all((row["broker_id"], row["topic"], row["partition"]) in hurt for row in others), others
        assert remote.status in (3, 5)
        assert "sound" not in {
            row["verdict"] for row in remote.of("judgement")
            if (row["broker_id"], row["topic"], row["partition"]) in hurt
        }  # fmt: skip
        return True
    assert sorted(map(told, remote.rows)) == sorted(map(told, local.rows))
    return False


def test_a_report_goes_to_a_store_that_has_its_bucket(
    rig: Rig, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One that is not there is said before the work is done. What is written does not go through the proxy."""
    for key, value in rig.store.environment(rig.store.port).items():
        monkeypatch.setenv(key, value)
    sent = rows("audit", "run", rig.folder, "--out", f"{rig.store.url}/report", "--jobs", 1)
    assert sent.status == 5, sent.err
    again = rows("audit", "run", rig.folder, "--out", f"{rig.store.url}/report", "--jobs", 1)
    assert again.status == 4 and "contains an earlier report" in again.err
    monkeypatch.setattr("kctl.audit.run.run", None)
    nowhere = rig.store.url.replace("evidence", "nowhere")
    refused = rows("audit", "run", rig.folder, "--out", f"{nowhere}/report", "--jobs", 1)
    assert refused.status == 3, refused.err
    assert f"{nowhere}/report" in refused.err and len(refused.err.strip().splitlines()) == 2
