"""Writes a finished report into a store: tables first, `summary.json` last, so that a prefix without it is no report.

A later run with `--overwrite` removes what a killed run has left.
"""

from __future__ import annotations

import shutil
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from kctl.errors import KctlError, Refused
from kctl.files import open_file
from kctl.stores.file_systems import StoreUnreachable, file_system, first_answer
from kctl.stores.objects import failure

SUMMARY = "summary.json"
PIECE = 8 << 20


def _is_missing(files: Any, bucket: str) -> bool:
    """Whether the store says that the bucket is missing. False if asking is denied: writing may be allowed."""
    from pyarrow import fs
    from pyarrow.lib import ArrowException

    with suppress(OSError, ValueError, ArrowException):
        return bool(files.get_file_info(bucket).type == fs.FileType.NotFound)
    return False


class Target:
    """A prefix that a report is written to. Raises StoreUnreachable if it cannot be listed."""

    def __init__(self, url: str) -> None:
        from formats.secrets import redact_text

        self.shown_url = redact_text(url).partition("?")[0].rstrip("/")
        self.kept: Path | None = None
        """The local folder of a report that could not be written there."""
        parts = urlsplit(url)

        def ask() -> tuple[Any, str, bool]:
            files, path = file_system(url)
            bucket = path.partition("/")[0]
            return files, path, bucket in (parts.hostname, parts.username) and _is_missing(files, bucket)

        self.files, self.path, is_missing = first_answer(url, ask)
        if is_missing:
            bucket = self.path.partition("/")[0]
            raise StoreUnreachable(f"{self.shown_url}: no {bucket!r} in the store")

    def refuse_others(self, own_names: frozenset[str], *, overwrite: bool) -> None:
        """Raise Refused if the prefix has files of others, or an earlier report that may not be overwritten."""
        names = {key.split("/", 1)[0] for key in self._keys()}
        if foreign := sorted(names - own_names):
            raise Refused(
                f"{self.shown_url} is not empty ({foreign[0]} lies there)", "name a new prefix with --out"
            )
        if names and not overwrite:
            raise Refused(
                f"{self.shown_url} contains an earlier report",
                "give --overwrite, or name a new prefix with --out",
            )

    def publish(self, folder: Path) -> None:
        """Replace everything below the prefix by the files of a folder.

        Raises KctlError; then there is no summary, and the folder is `kept`.
        """
        try:
            self._publish(folder)
        except KctlError as error:
            self.kept = folder
            error.hint = f"the report is whole in {folder}; {error.hint}"
            raise

    def _publish(self, folder: Path) -> None:
        paths = sorted(path for path in folder.rglob("*") if path.is_file() and ".resume" not in path.parts)
        paths.sort(key=lambda path: path.name == SUMMARY and path.parent == folder)
        earlier = sorted(self._keys(), key=lambda key: key != SUMMARY)
        for key in earlier:
            self._ask(lambda key=key: self.files.delete_file(f"{self.path}/{key}"), key)
        for path in paths:
            key = path.relative_to(folder).as_posix()
            self._ask(lambda path=path, key=key: self._put(path, f"{self.path}/{key}"), key)

    def _put(self, path: Path, key: str) -> None:
        try:
            output = self.files.open_output_stream(key)
        except FileNotFoundError:  # of a file system with folders
            self.files.create_dir(key.rpartition("/")[0], recursive=True)
            output = self.files.open_output_stream(key)
        with open_file(path) as source, output:
            shutil.copyfileobj(source, output, PIECE)
        if (stored_size := self.files.get_file_info(key).size) != (size := path.stat().st_size):
            raise OSError(0, f"has {stored_size} bytes after {size} were written")

    def _keys(self) -> list[str]:
        from pyarrow import fs

        infos = self._ask(
            lambda: self.files.get_file_info(
                fs.FileSelector(self.path, recursive=True, allow_not_found=True)
            ),
            "",
        )
        return [
            info.path.removeprefix(self.path).lstrip("/")
            for info in infos
            if info.type == fs.FileType.File and not info.path.endswith("/")
        ]

    def _ask(self, request: Any, key: str) -> Any:
        from pyarrow.lib import ArrowException

        try:
            return request()
        except KctlError:
            raise
        except (OSError, ValueError, ArrowException) as error:
            where = f"{self.shown_url}/{key}".rstrip("/")
            raise StoreUnreachable(f"{where}: {failure(error, where).strerror}") from None
