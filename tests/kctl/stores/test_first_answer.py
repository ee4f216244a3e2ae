"""A store that does not answer at all ends a command soon, and says so."""

from __future__ import annotations

import threading

import pytest

from kctl.audit import publishing
from kctl.errors import BadValue
from kctl.stores import sent_mirrors
from kctl.stores.file_systems import StoreUnreachable, answer_seconds, first_answer


def test_a_store_that_is_silent_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KCTL_STORE_TIMEOUT", "0.05")
    never = threading.Event()
    with pytest.raises(StoreUnreachable) as raised:
        first_answer("gs://bucket/path?secret=hidden", never.wait)
    never.set()
    assert (
        raised.value.message == "gs://bucket/path: the store did not answer the first request within 0.05 s"
    )


def test_an_answer_and_an_error_are_passed_on() -> None:
    assert first_answer("s3://b", lambda: 7) == 7
    with pytest.raises(PermissionError):
        first_answer("s3://b", lambda: (_ for _ in ()).throw(PermissionError("no")))


@pytest.mark.parametrize("text", ["soon", "0", "-1", "inf", "nan"])
def test_what_is_no_time_is_refused(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KCTL_STORE_TIMEOUT", text)
    with pytest.raises(BadValue):
        answer_seconds()


@pytest.mark.parametrize("where", ["publishing", "sent_mirrors"])
def test_a_report_and_an_executor_do_not_wait_for_a_silent_store(
    where: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    never = threading.Event()

    class Silent:
        def get_file_info(self, path: str) -> None:
            never.wait()

    module = {"publishing": publishing, "sent_mirrors": sent_mirrors}[where]
    monkeypatch.setattr(module, "file_system", lambda url: (Silent(), "bucket/report"))
    monkeypatch.setenv("KCTL_STORE_TIMEOUT", "0.05")
    url = "gs://bucket/report"
    if where == "publishing":
        with pytest.raises(StoreUnreachable, match=r"within 0\.05 s"):
            publishing.Target(url)
    else:
        assert "within 0.05 s" in (sent_mirrors.reached(sent_mirrors.SentStore(url, url)) or "")
    never.set()
