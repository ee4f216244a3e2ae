"""File systems by URL: S3, Google Cloud Storage, Azure and HDFS through `pyarrow.fs`, others through fsspec.

Credentials and end points come from the usual environment and files of each store; the URL's query overrides them.
Errors of a store's client are not evidence by themselves: see `kctl.stores.objects`.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from queue import Empty, Queue
from threading import Thread
from typing import Any, TypeVar, cast
from urllib.parse import parse_qsl, unquote, urlsplit

from formats.secrets import REDACTED, redact_text
from kctl.errors import BadValue, KctlError

CONNECT_SECONDS, REQUEST_SECONDS, ATTEMPTS = 5, 60, 4
GCS_SECONDS = 30  # of attempts for one request
ANSWER_SECONDS = 12.0  # until the first answer of a store
LONGEST_SECONDS = 86_400
T = TypeVar("T")
_ASKING: list[Thread] = []
URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")
TRUE = ("true", "1", "yes")
# Options of a URL's query, named as in the constructors of pyarrow.fs.
S3_OPTIONS = {
    "endpoint_override", "region", "scheme", "access_key", "secret_key", "session_token", "role_arn", "anonymous",
    "force_virtual_addressing",
}  # fmt: skip
GCS_OPTIONS = {
    "endpoint_override", "scheme", "anonymous", "project_id", "target_service_account", "retry_limit_seconds",
}  # fmt: skip
AZURE_OPTIONS = {
    "account_key", "sas_token", "tenant_id", "client_id", "client_secret", "blob_storage_authority", "blob_storage_scheme",
    "dfs_storage_authority", "dfs_storage_scheme",
}  # fmt: skip
NOT_SECRET = {
    "endpoint_override", "region", "scheme", "anonymous", "force_virtual_addressing", "project_id", "role_arn",
    "target_service_account", "tenant_id", "client_id", "blob_storage_authority", "blob_storage_scheme",
    "dfs_storage_authority", "dfs_storage_scheme", "replication", "retry_limit_seconds",
}  # fmt: skip
"""Options whose values are no secrets."""


class StoreUnreachable(KctlError):
    """The store did not answer or denied access."""

    hint = "check the URL, the credentials in the environment, and that the store can be reached from here"


class StoreGone(KctlError):
    """A store stopped answering or revoked access during the run; the rest of it is not read."""

    hint = "look whether it runs and its credentials still hold, and start again"


def is_url(path: str) -> bool:
    """Whether a path of the command line is a URL of something outside of this machine."""
    return URL.match(path) is not None and not path.startswith("file://")


def file_system(url: str) -> tuple[Any, str]:
    """The `pyarrow.fs` file system of a URL, and the path in it. Raises StoreUnreachable."""
    from pyarrow.lib import ArrowException

    shown_url = redact_text(url).partition("?")[0]
    try:
        parts = urlsplit(url)
    except ValueError as error:
        raise StoreUnreachable(f"{shown_url}: {one_line(error)}") from None
    try:
        return SCHEMES.get(parts.scheme.lower(), _fsspec)(url)
    except (OSError, ValueError, NotImplementedError, ImportError, ArrowException) as error:
        message = str(error)
        secrets = [value for name, value in parse_qsl(parts.query) if name not in NOT_SECRET]
        for secret in sorted(secrets, key=len, reverse=True):
            message = message.replace(secret, REDACTED)
        raise StoreUnreachable(f"{shown_url}: {one_line(OSError(message))}") from None


def first_answer(url: str, ask: Callable[[], T]) -> T:
    """What the first request to a store returns; raises what it raises, and StoreUnreachable if nothing comes in time.

    Clients repeat a request for a minute or two where a name, an address or a token does not come; the limit is
    KCTL_STORE_TIMEOUT, in seconds, which `--timeout` sets.
    """
    answers: Queue[tuple[T | None, BaseException | None]] = Queue()

    def wait() -> None:
        try:
            answers.put((ask(), None))
        except BaseException as error:  # noqa: BLE001: it is raised where it was asked for
            answers.put((None, error))

    seconds = answer_seconds()
    asking = Thread(target=wait, daemon=True)
    _ASKING.append(asking)
    asking.start()
    try:
        answer, error = answers.get(timeout=seconds)
    except Empty:
        shown_url = redact_text(url).partition("?")[0]
        raise StoreUnreachable(
            f"{shown_url}: the store did not answer the first request within {seconds:g} s",
            "check the network, the end point and the credentials, or wait longer: --timeout 60s, KCTL_STORE_TIMEOUT=60",
        ) from None
    if error is not None:
        raise error
    return cast(T, answer)


def answer_seconds() -> float:
    """The limit for the first answer of a store."""
    text = os.environ.get("KCTL_STORE_TIMEOUT", "")
    try:
        seconds = float(text) if text else ANSWER_SECONDS
    except ValueError:
        seconds = 0
    if not 0 < seconds < LONGEST_SECONDS:
        raise BadValue(
            f"--timeout or KCTL_STORE_TIMEOUT={text!r} is not a number of seconds above 0",
            "write one such as 60",
        )
    return seconds


def leave_if_asking(status: int) -> None:
    """End this process with a status where a client still waits for a store, which would hold up its end for minutes."""
    if not any(thread.is_alive() for thread in _ASKING):
        return
    import atexit

    from pyarrow import fs

    atexit.unregister(fs.ensure_s3_finalized)  # it waits for requests under way
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)


def one_line(error: BaseException) -> str:
    """A library's message on one line, without secrets."""
    return redact_text(" ".join(str(error).split())) or type(error).__name__


def _options(url: str, known: set[str]) -> dict[str, Any]:
    options: dict[str, Any] = dict(parse_qsl(urlsplit(url).query))
    unknown = options.keys() - known
    if unknown:
        raise ValueError(f"unknown option {sorted(unknown)[0]!r}; known are {', '.join(sorted(known))}")
    return {key: value in TRUE if key in FLAGS else value for key, value in options.items()}


FLAGS = ("anonymous", "force_virtual_addressing")


def _s3(url: str) -> tuple[Any, str]:
    from pyarrow import fs

    parts, options = urlsplit(url), _options(url, S3_OPTIONS)
    if parts.username:
        options |= {"access_key": unquote(parts.username), "secret_key": unquote(parts.password or "")}
    endpoint = os.environ.get("AWS_ENDPOINT_URL_S3") or os.environ.get("AWS_ENDPOINT_URL")
    if endpoint and "endpoint_override" not in options:
        options["scheme"], _, options["endpoint_override"] = endpoint.rstrip("/").rpartition("://")
    if "endpoint_override" in options:  # otherwise the client asks the metadata service for the region
        options.setdefault(
            "region", os.environ.get("AWS_REGION") or os.environ.get("AWS_DEFAULT_REGION") or "us-east-1"
        )
    retries = fs.AwsStandardS3RetryStrategy(max_attempts=ATTEMPTS)
    files = fs.S3FileSystem(
        **options, connect_timeout=CONNECT_SECONDS, request_timeout=REQUEST_SECONDS, retry_strategy=retries
    )
    return files, _path(parts.hostname, parts.path)


def _gcs(url: str) -> tuple[Any, str]:
    from pyarrow import fs

    parts, options = urlsplit(url), _options(url, GCS_OPTIONS)
    if parts.username == "anonymous":
        options["anonymous"] = True
    emulator = os.environ.get("STORAGE_EMULATOR_HOST")
    if emulator and "endpoint_override" not in options:
        scheme, _, options["endpoint_override"] = emulator.rstrip("/").rpartition("://")
        options |= {"scheme": scheme or "http", "anonymous": True}
    limit = timedelta(seconds=float(options.pop("retry_limit_seconds", GCS_SECONDS)))
    files = fs.GcsFileSystem(**options, retry_time_limit=limit)
    return files, _path(parts.hostname, parts.path)


def _azure(url: str) -> tuple[Any, str]:
    """`abfs[s]://CONTAINER@ACCOUNT.dfs.core.windows.net/PATH`, or `abfs://CONTAINER/PATH` of the account in the environment.

    The library ignores a key in the URL and writes signatures into its errors.
    """
    from pyarrow import fs

    parts, options = urlsplit(url), _options(url, AZURE_OPTIONS)
    settings = _connection_string(os.environ.get("AZURE_STORAGE_CONNECTION_STRING", ""))
    if parts.username:
        container, account = unquote(parts.username), (parts.hostname or "").partition(".")[0]
    else:
        container = parts.hostname or ""
        account = settings.get("AccountName") or os.environ.get("AZURE_STORAGE_ACCOUNT", "")
    if not account:
        raise ValueError(
            "no account: write abfs://CONTAINER@ACCOUNT.dfs.core.windows.net/PATH, or set AZURE_STORAGE_ACCOUNT"
        )
    if "account_key" not in options and "sas_token" not in options:
        key = settings.get("AccountKey") or os.environ.get("AZURE_STORAGE_KEY")
        token = settings.get("SharedAccessSignature") or os.environ.get("AZURE_STORAGE_SAS_TOKEN")
        options |= {"account_key": key} if key else {"sas_token": token} if token else {}
    if "sas_token" in options:
        options["sas_token"] = "?" + options["sas_token"].removeprefix("?")
    if endpoint := settings.get("BlobEndpoint"):
        at = urlsplit(endpoint)
        for service in ("blob", "dfs"):
            options.setdefault(f"{service}_storage_authority", at.netloc)
            options.setdefault(f"{service}_storage_scheme", at.scheme)
    return fs.AzureFileSystem(account_name=account, **options), _path(container, parts.path)


def _connection_string(text: str) -> Mapping[str, str]:
    return dict(pair.split("=", 1) for pair in text.split(";") if "=" in pair)


def _hdfs(url: str) -> tuple[Any, str]:
    from pyarrow import fs

    if os.environ.get("ARROW_LIBHDFS_DIR") or os.environ.get("HADOOP_HOME"):
        files, path = fs.FileSystem.from_uri(url)
        return files, str(path)
    return _fsspec(url)


def _fsspec(url: str) -> tuple[Any, str]:
    from pyarrow import fs

    try:
        import fsspec
    except ImportError:
        raise ImportError(
            "needs the package fsspec, and the one of the store (hdfs-native, s3fs, ...)"
        ) from None
    parts = urlsplit(url)
    options = dict(parse_qsl(parts.query))
    files, path = fsspec.url_to_fs(parts._replace(query="").geturl(), **options)

    class Handler(fs.FSSpecHandler):  # type: ignore[misc]
        @staticmethod
        def _create_file_info(path: str, info: dict[str, Any]) -> Any:
            return fs.FSSpecHandler._create_file_info(path, timed(info))

    return fs.PyFileSystem(Handler(files)), str(path)


def timed(info: dict[str, Any]) -> dict[str, Any]:
    """File information from fsspec with the modification time under the name that pyarrow expects.

    HDFS clients use another name, in milliseconds. Without the time, a file replaced by one of equal size would seem
    unchanged, and an unchanged one replaced.
    """
    for name in ("modification_time", "modificationTime"):
        if isinstance(value := info.get(name), int) and "mtime" not in info:
            return {
                **info,
                "mtime": datetime.fromtimestamp(value // 1000, UTC) + timedelta(milliseconds=value % 1000),
            }
    return info


def _path(bucket: str | None, path: str) -> str:
    return f"{bucket or ''}{unquote(path)}".rstrip("/")


SCHEMES: dict[str, Callable[[str], tuple[Any, str]]] = {
    "s3": _s3, "s3a": _s3, "s3n": _s3,
    "gs": _gcs, "gcs": _gcs,
    "abfs": _azure, "abfss": _azure,
    "hdfs": _hdfs,
}  # fmt: skip
