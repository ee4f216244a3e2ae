"""What of a mirror goes to another machine: the files that work is about, paths that mean the same there, no secret."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from kctl.errors import BadValue
from kctl.files import open_file
from kctl.stores import sent_mirrors as sending
from kctl.stores.mirror import MIRRORS, given_name, local_path, mirror
from kctl.stores.sent_mirrors import SentStore, mirrors_for, mirrors_laid, place_of, placed, reached, stores
from tests.kctl.stores.test_mirror import LOG, URL, Handler, forgotten, store

__all__ = ["forgotten", "store"]  # fixtures


def test_a_folder_goes_with_its_files_and_is_laid_with_their_sizes_and_times(store: Handler) -> None:
    here = Path(local_path(URL))
    folder = here / "broker-1" / "data" / "stock-0"
    (part,) = mirrors_for([str(folder)])
    assert part.root == str(here)
    assert {key for key, _, _ in part.files} == {
        f"broker-1/data/stock-0/{name}" for name in os.listdir(folder)
    }
    root, key = place_of(str(folder)) or ("", "")
    before = os.environ[MIRRORS]
    with mirrors_laid([part]):
        there = placed(root, key)
        assert there != folder and place_of(str(there)) == (root, key)
        for name in os.listdir(folder):
            one, other = (there / name).stat(), (folder / name).stat()
            assert (one.st_size, one.st_mtime_ns) == (other.st_size, other.st_mtime_ns)
        with open_file(there / LOG) as file:
            assert file.read() == (store.folder / key / LOG).read_bytes()
        assert given_name(f"{there}: gone") == f"{URL}/broker-1/data/stock-0: gone"
    assert not there.exists() and not there.parents[3].exists(), "nothing stays"
    assert os.environ[MIRRORS] == before and placed(root, key) == folder


def test_a_file_goes_with_those_of_its_segment(store: Handler) -> None:
    log = Path(local_path(URL)) / "broker-1" / "data" / "stock-0" / LOG
    (part,) = mirrors_for([str(log)])
    names = {os.path.basename(key) for key, _, _ in part.files}
    assert LOG in names and {name.partition(".")[0] for name in names} == {LOG.partition(".")[0]}
    assert mirrors_for(["/etc/passwd", str(log.parents[4])]) == []


def test_work_that_fails_leaves_nothing(store: Handler) -> None:
    parts = mirrors_for([local_path(URL)])
    with pytest.raises(RuntimeError), mirrors_laid(parts):
        there = placed(parts[0].root, ".")
        raise RuntimeError
    assert not there.exists() and not sending._local_roots


def test_a_file_that_cannot_be_laid_is_an_error(store: Handler) -> None:
    """Without it the work would be done on less than was listed."""
    (part,) = mirrors_for([local_path(URL)])
    key, size, modified = part.files[0]
    for files in ([(key, -1, modified)], [(key, size, modified)] * 2):
        with (
            pytest.raises(OSError, match=re.escape(f"{URL}/{key}")),
            mirrors_laid([part._replace(files=files)]),
        ):
            pytest.fail("the work began")
        assert not sending._local_roots


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("s3://b/k?region=eu&endpoint_override=h:1&scheme=http&anonymous=true", ""),
        ("abfs://container@account.dfs.core.windows.net/k", ""),
        ("gs://anonymous@b/k", ""),
        ("gs://b/k?target_service_account=reader@project.iam.gserviceaccount.com", ""),
        ("s3://b/k?role_arn=arn:aws:iam::1:role/reader@x", ""),
        ("hdfs://root@h:1/k?replication=1", ""),
        ("s3://me:hidden-word@b/k", "a key"),
        ("s3://me@b/k", "a key"),
        ("s3a://b/k?secret_key=hidden-word", "the option secret_key"),
        ("abfs://c@a.dfs.core.windows.net/k?sas_token=hidden-word", "the option sas_token"),
        ("s3://b/k?endpoint_override=http://me:hidden-word@h:1", "a key in the option endpoint_override"),
        (
            "s3://b/k?endpoint_override=me%3Ahidden-word%40h:1&endpoint_override=h:1",
            "a key in the option endpoint",
        ),
        (
            "abfs://c@a/k?blob_storage_authority=me:hidden-word@h",
            "a key in the option blob_storage_authority",
        ),
        ("ftp://me:hidden-word@h/k", "a key"),
        ("webhdfs://h/k?token=hidden-word", "the option token"),
    ],
)
def test_no_secret_is_sent(
    store: Handler, url: str, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "kctl.stores.file_systems.file_system", lambda url: (store_files(store), "bucket/evidence")
    )
    mirror(url, tmp_path)
    if not said:
        assert [one.url for one in stores()] == [url]
        return
    with pytest.raises(BadValue, match=said) as raised:
        stores()
    assert "hidden" not in str(raised.value)


def store_files(handler: Handler) -> object:
    from pyarrow import fs

    return fs.PyFileSystem(handler)


def test_a_store_that_is_not_reached_is_said_with_its_name(store: Handler) -> None:
    local_path(URL)
    (one,) = stores()
    assert reached(one) is None
    assert reached(SentStore(f"{URL}/none", f"{URL}/none")) == f"{URL}/none: nothing is there"
    assert "nonsense://h/x" in (reached(SentStore("nonsense://h/x", "nonsense://h/x")) or "")
