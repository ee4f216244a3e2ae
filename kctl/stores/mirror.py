"""Evidence in a store as folders on this machine: every object is an empty file with its name, size and time.

Opening a file of a mirror reads the object, in ranges, with nothing kept on disk. Child processes find the mirrors by
the environment.
"""

from __future__ import annotations

import errno
import functools
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from formats.words import counted
from kctl.errors import KctlError
from kctl.stores.request_counts import REQUESTS, CountingFiles

if TYPE_CHECKING:
    from kctl.stores.objects import ObjectSource, ObjectStream

MIRRORS = "KCTL_MIRRORS"
"""Environment variable: folders of mirrors as a JSON list. Beside each folder is a file with its URL."""
OBJECTS_A_PAGE = 1000  # of a listing
LONGEST_NAME = 255  # bytes of a file's name
DESCRIPTION = ".mirror"
# For a key below another key, and for one that is too long.
NO_PLACE = (errno.EEXIST, errno.ENOTDIR, errno.EISDIR, errno.ENAMETOOLONG)


class Mirror(NamedTuple):
    """A mirror; `shown_url` is the URL without secrets, `path` the path of its root in the file system."""

    root: Path
    shown_url: str
    files: Any
    path: str
    unlisted: str
    """Which objects are missing in the folder, as a sentence."""


class Description(NamedTuple):
    """The file beside a mirror; `url` includes secrets, the other fields are as in `Mirror`."""

    url: str
    path: str
    shown_url: str
    unlisted: str
    part_of: str = ""
    """The folder of the mirror that was sent, on the sender's machine."""


def local_path(path: str) -> str:
    """The path; for a URL the folder or file that mirrors it until this process ends. Raises as `mirror`."""
    if "://" not in path:
        return path
    import atexit
    from urllib.parse import unquote

    from kctl.stores.file_systems import is_url
    from kctl.temporary_folder import new_folder

    if path.startswith("file://"):
        return unquote("/" + path.removeprefix("file://").partition("/")[2])
    if not is_url(path):
        return path
    folder = new_folder("store")
    atexit.register(folder.remove)
    return str(mirror(path, folder.path))


def mirror(url: str, folder: Path) -> Path:
    """Create a mirror of a URL; return the folder or file below `folder` that stands for it.

    Raises StoreUnreachable, also if there is no object under the URL.
    """
    import json

    from pyarrow import fs
    from pyarrow.lib import ArrowException

    from formats.secrets import redact_text
    from kctl.stores.file_systems import StoreUnreachable, file_system, first_answer
    from kctl.stores.objects import failure

    def ask() -> tuple[Any, str, Any]:
        files, path = file_system(url)
        return files, path, files.get_file_info(path)

    shown_url = redact_text(url).partition("?")[0].rstrip("/")
    try:
        files, path, info = first_answer(url, ask)
        root = folder / _name_of(path)
        if info.type == fs.FileType.File:
            path, _, file_name = path.rpartition("/")
            root, shown_url = folder / _name_of(path), shown_url.rpartition("/")[0]
            stem, objects = file_name.partition(".")[0], files.get_file_info(fs.FileSelector(path))
            objects = [info for info in objects if info.base_name.partition(".")[0] == stem]
        else:
            file_name, objects = "", files.get_file_info(fs.FileSelector(path, recursive=True))
    except (OSError, ValueError, ArrowException) as error:
        raise StoreUnreachable(f"{shown_url}: {failure(error, shown_url).strerror}") from None
    # The marker object of a folder is empty.
    objects = [info for info in objects if info.type == fs.FileType.File]
    objects = [info for info in objects if info.size or not info.path.endswith("/")]
    REQUESTS.add(2 + len(objects) // OBJECTS_A_PAGE)
    if not objects:
        raise StoreUnreachable(f"{shown_url}: no object is under this URL", "check the bucket and the prefix")
    root.mkdir(mode=0o700)
    unplaced = [stored_object.path for stored_object in objects if not _placed(root, stored_object, path)]
    unlisted = ""
    if unplaced:
        what = f"{counted(len(unplaced), 'key')} cannot be {'the name of a file' if len(unplaced) == 1 else 'names of files'}; the first is"
        what = what if len(unplaced) > 1 else "1 key cannot be the name of a file:"
        unlisted = f"{shown_url}: {what} {redact_text(repr(unplaced[0].removeprefix(path)))}"
    describe(root, Description(url, path, shown_url, unlisted))
    os.environ[MIRRORS] = json.dumps([*mirrors(), str(root)])
    return root / file_name


def _name_of(path: str) -> str:
    name = path.rpartition("/")[2]
    return name if _is_name(name) and _is_name(name + DESCRIPTION) else "store"


def _is_name(name: str) -> bool:
    return name not in ("", ".", "..") and "\0" not in name and len(os.fsencode(name)) <= LONGEST_NAME


def _placed(root: Path, info: Any, path: str) -> bool:
    """Create an empty file for an object; False if its key cannot be a file name."""
    names = info.path.removeprefix(path).removeprefix("/").split("/")
    return all(map(_is_name, names)) and place_file(root.joinpath(*names), info.size, info.mtime_ns)


def place_file(path: Path, size: int, modified: int | None) -> bool:
    """Create an empty file of this size and modification time (nanoseconds); False if that is impossible."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o400)
    except OSError as error:
        if error.errno not in NO_PLACE:
            raise
        return False
    try:
        os.ftruncate(descriptor, size)
        if modified is not None:
            os.utime(descriptor, ns=(modified, modified))
    except (OSError, OverflowError, TypeError):  # a size or a time that no file can have
        path.unlink()
        return False
    finally:
        os.close(descriptor)
    return True


def describe(root: Path, description: Description) -> None:
    """Write the description beside a mirror, readable only by this user."""
    import json

    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL
    with os.fdopen(os.open(_file_of(root), flags, 0o600), "w", encoding="utf-8") as file:
        json.dump(description._asdict(), file)


def description_of(root: str) -> Description:
    """The description beside a mirror."""
    import json

    return Description(**json.loads(_file_of(Path(root)).read_bytes()))


def _file_of(root: Path) -> Path:
    return root.with_name(root.name + DESCRIPTION)


def mirrors() -> list[str]:
    text = os.environ.get(MIRRORS)
    return list(_parsed(text)) if text else []


@functools.cache
def _parsed(text: str) -> tuple[str, ...]:
    import json

    return tuple(json.loads(text))


def mirror_of(path: str) -> Mirror | None:
    """The mirror that a path is in; None for other paths."""
    for root in mirrors():
        if path == root or path.startswith(root + os.sep):
            return _opened(root, os.getpid())
    return None


@functools.lru_cache(maxsize=64)
def _opened(root: str, process: int) -> Mirror:
    description = description_of(root)
    files = _client(description.url, description.part_of or root, process)
    return Mirror(Path(root), description.shown_url, files, description.path, description.unlisted)


@functools.lru_cache(maxsize=64)
def _client(url: str, whole: str, process: int) -> Any:
    """The client of a store, created once a process, since clients do not survive a fork; shared by parts of a mirror."""
    from kctl.stores.file_systems import file_system

    return CountingFiles(file_system(url)[0])


def stored(path: str) -> ObjectSource | None:
    """The object behind a path of a mirror; None for other paths. `OSError` if it was not listed."""
    if not (MIRRORS in os.environ and (mirror_of_path := mirror_of(path))):
        return None
    from kctl.stores.objects import ObjectSource

    status = os.stat(path, follow_symlinks=False)
    key = os.path.relpath(path, mirror_of_path.root)
    return ObjectSource(
        mirror_of_path.files, f"{mirror_of_path.path}/{key}", status.st_size, status.st_mtime_ns, f"{mirror_of_path.shown_url}/{key}",
        functools.partial(ask, mirror_of_path),
    )  # fmt: skip


def ask(mirror_: Mirror) -> None:
    """Raise StoreGone if the store of a mirror no longer answers."""
    from pyarrow.lib import ArrowException

    from kctl.stores.file_systems import StoreGone
    from kctl.stores.objects import failure

    try:
        mirror_.files.get_file_info(mirror_.path)
    except (OSError, ValueError, ArrowException) as error:
        reason = failure(error, mirror_.shown_url).strerror
        raise StoreGone(f"{mirror_.shown_url} can no longer be read: {reason}") from None


def ask_all() -> None:
    """Raise StoreGone if the store of any mirror no longer answers."""
    for root in mirrors():
        if mirror_ := mirror_of(root):
            ask(mirror_)


def stream(path: str) -> ObjectStream | None:
    """The object behind a path of a mirror as a file; None for other paths."""
    from kctl.stores.objects import ObjectStream

    source = stored(path)
    return ObjectStream(source) if source else None


def unlisted(path: str) -> KctlError | None:
    """The error about objects of this store that could not be listed; None if all were."""
    mirror_ = mirror_of(path)
    hint = "name a deeper prefix, which leaves them out"
    return KctlError(mirror_.unlisted, hint) if mirror_ and mirror_.unlisted else None


STANDS_FOR: dict[str, str] = {}
"""Folders of this process that stand for a file that was given, and that file."""


def given_name(text: str) -> str:
    """The text with the URLs of mirrors (without secrets) instead of their paths, which differ in every run."""
    for folder, path in STANDS_FOR.items():
        text = text.replace(folder, path)
    for root in mirrors():
        if root in text and (mirror_ := mirror_of(root)):
            text = text.replace(root, mirror_.shown_url)
    return text
