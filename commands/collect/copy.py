"""`kctl collect` and `kctl collect verify`: a copy of brokers' files, and whether it is still as it was made."""

from __future__ import annotations

import socket
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from time import monotonic, time_ns
from typing import TYPE_CHECKING

import click

from commands.cli.frame import Frame, command
from commands.cli.options import GIVEN_PATH, PARTITION, TOPIC, WRITTEN, Size, flag, option
from commands.cli.render import Outcome, Page, Row, finding_line, folding, size
from formats.words import counted
from kctl.errors import BadValue, KctlError, Refused, file_error
from kctl.files import read_text
from kctl.model import command_line
from kctl.version import __version__

if TYPE_CHECKING:
    from commands.collect.brokers import AskedCluster
    from formats.log.hashed_contents import ContentHash
    from kctl.collect.collection import Collected, Collection
    from kctl.collect.placement import Choice, Plan
    from kctl.collect.transport import Source
    from kctl.evidence.model import FoundEvidence, Root


ASK_AS = "give this user the right, or wait until the brokers answer, then collect into a new folder"
READ_AS = "collect as a user who may read it, or look for errors of the disk in the system log, then go on with --resume"


@command(
    "collect",
    status="0 all was copied · 2 a name that nothing matches · 3 something was not copied · 4 --to is not empty, lies in a source, or is finished",
)
@click.argument("sources", nargs=-1, metavar="[SOURCE]...")
@option(
    "--sources FILE",
    "Also copy the sources that this file names, one a line.",
    into="listed",
    type=GIVEN_PATH,
)
@option("--to FOLDER", "Write the copy into this folder, which is new or empty.", type=WRITTEN, required=True)
@TOPIC
@PARTITION
@option(
    "--since TIME",
    "Leave out broker logs last written to before, and records before with --records (ISO 8601, -2h, epoch ms).",
)
@flag("--records", "With --bootstrap-server also fetch the batches of each replica.")
@flag(
    "--headers",
    "Replace keys, values and header values by hashes of their size, for evidence that others get.",
)
@option(
    "--hash-key FILE",
    "The key of these hashes; a file of mode 600, made where it is not there.",
    type=WRITTEN,
    default=None,
)
@option("--rate SIZE", "Read at most so much a second, such as 50MiB.", type=Size(), default=None)
@option("--broker ID=FOLDER...", "Set the broker id of a folder; repeatable.", into="brokers")
@option("--moment NAME=FOLDER...", "Name the moment that a folder was copied at; repeatable.", into="moments")
@flag("--resume", "Go on with a copy that was interrupted; what was copied whole is not read again.")
def collect(
    frame: Frame,
    sources: tuple[str, ...],
    listed: Path | None,
    to: str,
    topics: tuple[str, ...],
    partitions: tuple[int, ...],
    since: str | None,
    records: bool,
    headers: bool,
    hash_key: str | None,
    rate: int | None,
    brokers: tuple[str, ...],
    moments: tuple[str, ...],
    resume: bool,
) -> Outcome:
    """Copy the evidence of brokers, while they run, with a manifest.

    SOURCE is a log directory, a folder of broker logs, a server.properties file, or a folder that holds such: a path, or
    on another machine ssh://[USER@]HOST[:PORT]/PATH, docker://CONTAINER/PATH, k8s://NAMESPACE/POD[/CONTAINER]/PATH, read
    by the ssh, docker or kubectl of this machine and a shell, find, stat and tar of that one. Copied are
    log directories, broker logs, settings without secrets, znode exports and tiers; with --topic or --partition only
    these partitions, and the metadata log. Files are read in an order that suits running brokers, each once and up to
    its first size; nothing is written to a source. The folder is evidence for every command: `kctl audit run FOLDER`.
    `kctl collect verify` checks it later. With --bootstrap-server, brokers tell their metadata, log directories, epochs,
    groups, transactions and producers; with --records they give the batches of each replica up to the high watermark.

    $ kctl collect --to evidence /var/lib/kafka/data /var/log/kafka /etc/kafka/server.properties
    $ kctl collect --to evidence --topic orders --rate 50MiB /var/lib/kafka
    $ kctl collect --to evidence ssh://kafka1/etc/kafka/server.properties ssh://kafka1/var/log/kafka
    $ kctl collect --to evidence --sources brokers.txt
    $ kctl collect --to evidence --bootstrap-server kafka1:9092 --records --topic orders
    $ kctl collect --to for-others --headers --hash-key kctl.key /var/lib/kafka/data
    """
    from kctl.collect.placement import Choice
    from kctl.times import parse_time

    sources = (*sources, *(_listed(listed) if listed else ()))
    # A variable or a context that names brokers is for all commands: beside paths it asks for nothing.
    asks = bool(frame.context.bootstrap_server) and (records or not sources or _names_brokers())
    if not sources and not asks:
        raise BadValue(
            "no source is named",
            "give SOURCE..., --sources FILE with one a line, or --bootstrap-server HOSTS",
        )
    if records and not asks:
        raise BadValue("--records: no brokers are named", "give --bootstrap-server HOSTS")
    if headers != (hash_key is not None):
        raise BadValue(
            "--headers and --hash-key go together",
            "give both; the file is made where it is not there, and whoever has it can try contents out",
        )
    if rate == 0:
        raise BadValue(
            "--rate 0: nothing would be read", "leave --rate out to read as fast as the disks allow"
        )
    choice = Choice(frozenset(topics), frozenset(partitions), parse_time(since) if since else None)
    words = ["--to", to]
    words += [word for topic in topics for word in ("--topic", topic)]
    words += [word for number in partitions for word in ("--partition", str(number))]
    words += ["--since", since] if since else []
    words += ["--bootstrap-server", frame.context.bootstrap_server or ""] if asks else []
    words += ["--records"] if records else []
    words += ["--headers", "--hash-key", hash_key] if hash_key else []
    words += ["--rate", str(rate)] if rate else []
    words += [word for broker in brokers for word in ("--broker", broker)]
    words += [word for moment in moments for word in ("--moment", moment)]
    words += ["--resume"] if resume else []
    run = _Run(frame, Path(to), command_line("kctl collect", sources, words), choice, rate or 0, resume)
    if asks:
        run.asks_records = records
    run.hash_key = Path(hash_key) if hash_key else None
    return Outcome(run.rows(sources, brokers, moments), text=folding(collected_text))


def _names_brokers() -> bool:
    """Whether the command line itself names brokers, or client properties that may."""
    from click.core import ParameterSource

    context = click.get_current_context(silent=True)
    while context is not None:
        for name in ("bootstrap_server", "command_config"):
            if context.get_parameter_source(name) is ParameterSource.COMMANDLINE:
                return True
        context = context.parent
    return False


def _listed(path: Path) -> Iterator[str]:
    """The sources that a file names, one a line; empty lines and those that begin with # name none."""
    try:
        lines = read_text(path).splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise file_error(path, error, KctlError) from error
    yield from (line.strip() for line in lines if line.strip() and not line.lstrip().startswith("#"))


class _Run:
    """One run of `kctl collect`."""

    def __init__(
        self, frame: Frame, to: Path, command_line: str, choice: Choice, rate: int, resume: bool
    ) -> None:
        from formats.secrets import redact_text

        self.frame, self.to, self.choice, self.rate, self.is_resumed = frame, to, choice, rate, resume
        self.command_line = redact_text(command_line)
        self.lost: dict[str, str] = {}
        """Sources that could not be reached, and why."""
        self.asks_records: bool | None = None
        """Whether batches are fetched; None where no brokers are asked."""
        self.hash_key: Path | None = None
        """The file of the key that contents are hashed with; None where they are copied."""
        self._folder: Path | None = None
        self._shadows = 0

    def rows(
        self, paths: tuple[str, ...], brokers: tuple[str, ...], moments: tuple[str, ...]
    ) -> Iterator[Row]:
        """A row a source, then the summary."""
        from kctl.collect.collection import amount
        from kctl.collect.writing import prepare
        from kctl.rows.verify import COLLECTION_SUMMARY

        begun = monotonic()
        self._refuse_fetched()
        cluster = self._cluster(has_others=bool(paths))
        sources = self._sources(paths)
        planned = self._planned(sources, brokers, moments) if paths else []
        if self.frame.status == BadValue.exit_code:  # a name that nothing matches
            return
        roots = [source.root for source in sources if source.command is None]
        names = [*(source.shown for source, _ in planned), *self.lost, *(cluster.names if cluster else ())]
        content_hash = self._content_hash(roots)
        folder = prepare(self.to, roots, resume=self.is_resumed, shown=names)
        progress = self.frame.progress()
        progress.start("copying", sum(amount(source, plan) for source, plan in planned))
        run = self._collection(folder, content_hash)
        files = count = 0
        try:
            for source, plan in planned:
                done = run.run(source, plan, self.choice)
                files, count = files + done.files, count + done.bytes
                self._report(done)
                yield _row(done)
            by_path = {log_dir.broker_id for _, plan in planned for log_dir in plan.log_dirs}
            for done in cluster.copy(run, by_path) if cluster else ():
                files, count = files + done.files, count + done.bytes
                self._report(done)
                yield _row(done)
            for shown, why in self.lost.items():
                yield _row(run.unreached(shown, why, self.choice))
            seal = run.manifest.seal(self.command_line, __version__, time_ns() // 1_000_000)
        finally:
            run.manifest.close()
            run.target.close()
            self.frame.end_progress()
        yield COLLECTION_SUMMARY(
            folder=str(self.to), files=files, bytes=count, seconds=round(monotonic() - begun, 3),
            sha256=seal.sha256, errors=0,
        )  # fmt: skip

    def _refuse_fetched(self) -> None:
        """Refuse to go on with batches that brokers gave; a cluster that was not reached at all is copied."""
        from kctl.evidence.manifest import MANIFEST, has_fetched

        if (
            self.asks_records
            and self.is_resumed
            and (path := self.to / MANIFEST).is_file()
            and has_fetched(path)
        ):
            raise BadValue(
                "--resume: batches that brokers gave are not gone on with, as others have come since",
                "copy them into another folder, or go on without --records",
            )

    def _cluster(self, *, has_others: bool) -> AskedCluster | None:
        """The cluster that is asked over Kafka's own protocol; None without one, and where other sources are left."""
        if self.asks_records is None:
            return None
        from commands.collect.brokers import AskedCluster

        try:
            cluster = AskedCluster(self.frame, self.choice, records=self.asks_records)
        except KctlError as error:
            if isinstance(error, BadValue) or not has_others:
                raise
            self.frame.report(error)
            self.lost[f"kafka://{self.frame.context.bootstrap_server}"] = error.message
            return None
        click.get_current_context().call_on_close(cluster.close)
        return cluster

    def _report(self, done: Collected) -> None:
        """Say why a source was not copied whole: what could not be read, the first of it by name."""
        for words in done.unread:
            self.frame.fail(words, ASK_AS if done.source.startswith("kafka://") else READ_AS)
        if more := done.unread_count - len(done.unread):
            self.frame.fail(
                f"{done.source}: {counted(more, 'more name')} could not be read", "the manifest has each"
            )
        if done.incomplete and (done.is_lost or not done.unread):
            self.frame.fail(f"{done.source}: {done.incomplete}", "go on with --resume")

    def _content_hash(self, roots: Sequence[Path]) -> ContentHash | None:
        """What replaces contents. Raises Refused for a key that would be given away, or is not that of the first run."""
        from kctl.collect.hash_key import content_hash_of
        from kctl.evidence.manifest import MANIFEST, hash_key_id_of

        content_hash = content_hash_of(self.hash_key, [self.to, *roots]) if self.hash_key else None
        if self.is_resumed and (self.to / MANIFEST).is_file():
            first = hash_key_id_of(self.to / MANIFEST)
            if first != (content_hash.key_id if content_hash else None):
                how = "with their contents" if first is None else f"as hashes of the key {first}"
                raise Refused(
                    f"--to {self.to}: records were copied to it {how}",
                    "go on with --headers and --hash-key as the first time",
                )
        return content_hash

    def _collection(self, folder: Path, content_hash: ContentHash | None) -> Collection:
        from kctl.collect.collection import Collection, Earlier
        from kctl.collect.writing import Target, Throttle
        from kctl.evidence.manifest import MANIFEST, CollectionLine, ManifestWriter

        earlier = Earlier.of(folder / MANIFEST) if self.is_resumed else Earlier()
        first = CollectionLine(
            time_ns() // 1_000_000, self.command_line, __version__, socket.gethostname(),
            hash_key_id=content_hash.key_id if content_hash else None,
        )  # fmt: skip
        manifest = ManifestWriter.resumed(folder) if self.is_resumed else ManifestWriter.new(folder, first)
        run = Collection(Target(folder), manifest, Throttle(self.rate), self.frame.progress(), earlier)
        run.content_hash = content_hash
        return run

    def _sources(self, paths: tuple[str, ...]) -> list[Source]:
        """The sources, and those that files of settings among them name. What cannot be reached is reported."""
        from kctl.collect.local_source import LocalSource
        from kctl.collect.placement import log_dirs_of_settings
        from kctl.collect.shell import is_remote

        sources: list[Source] = []
        for text in dict.fromkeys(paths):
            if is_remote(text):
                sources += self._remote(text)
                continue
            if "://" in text:
                raise BadValue(
                    f"{text}: is no source",
                    "a source is a path, ssh://HOST/PATH, docker://CONTAINER/PATH or k8s://NAMESPACE/POD/PATH",
                )
            named = [name for name in log_dirs_of_settings(Path(text)) if Path(name).is_dir()]
            sources += [LocalSource(Path(path).resolve(), path) for path in (text, *named)]
        return list({source.shown: source for source in sources}.values())

    def _remote(self, text: str) -> Iterator[Source]:
        """A source of another machine, listed, and the log directories that it names where it is a file of settings."""
        from kctl.collect.placement import log_dirs_of_settings
        from kctl.collect.remote_source import RemoteSource
        from kctl.collect.shell import Shell, address_of

        address = address_of(text)
        shell = Shell(address.command, address.shown)
        click.get_current_context().call_on_close(shell.close)
        paths = [address.path]
        for path in paths:
            self._shadows += 1
            source = RemoteSource(shell, path, self._temporary() / f"{self._shadows}" / path.strip("/"))
            try:
                source.clock_offset_ms = shell.clock_offset_ms()
                source.shadow()
            except KctlError as error:
                self.frame.report(error)
                self.lost[source.shown] = error.message
                continue
            yield source
            if path == address.path:
                paths += [name for name in log_dirs_of_settings(source.root) if name != path]

    def _temporary(self) -> Path:
        """A folder of this process for what stands for files of other machines."""
        if self._folder is None:
            from kctl.temporary_folder import new_folder

            folder = new_folder("collect")
            click.get_current_context().call_on_close(folder.remove)
            self._folder = folder.path
        return self._folder

    def _planned(
        self, sources: Sequence[Source], brokers: tuple[str, ...], moments: tuple[str, ...]
    ) -> list[tuple[Source, Plan]]:
        """The sources with what is copied of each."""
        from commands.cli.evidence_options import EvidenceOptions
        from kctl.collect.placement import Places, plan_of, settings_files
        from kctl.evidence.discover import discover, refuse_nothing

        by_root = {source.root: source for source in sources}
        evidence = discover([str(root) for root in by_root], brokers=brokers, moments=moments)
        for failure in evidence.failures:
            self.frame.report(failure)
        folders = {log_dir.path for log_dir in evidence.log_dirs}
        places = Places()
        planned: list[tuple[Source, Plan]] = []
        for root in evidence.roots:
            source = by_root[root.path]
            plan = plan_of(source, evidence, self.choice, places, list(settings_files([root.path], folders)))
            source.unread += _unlisted(source, root, evidence)
            if not plan.is_empty:
                planned.append((source, plan))
                continue
            for words in source.unread:
                self.frame.fail(words, READ_AS)
            if not any(root.path.is_relative_to(folder) for folder in folders):
                self.frame.fail(f"{source.shown}: no evidence of Kafka in it", "name a log directory or logs")
        if not planned and not self.lost:
            refuse_nothing(evidence)
        if not planned:
            raise KctlError("nothing to copy", "name a log directory, or a folder of broker logs")
        options = EvidenceOptions(
            (), topics=tuple(self.choice.topics), partitions=tuple(self.choice.partitions)
        )
        if not self.choice.is_all:
            options.report_absent(self.frame, evidence)
        return planned


def _unlisted(source: Source, root: Root, evidence: FoundEvidence) -> Iterator[str]:
    """Folders of a source that could not be listed, beside those of partitions, each with the reason."""
    from kctl.findings.evidence import UNREADABLE

    log_dirs = {log_dir.path for log_dir in evidence.log_dirs}
    for finding in evidence.findings:
        place = finding.place
        if finding.code != UNREADABLE.code or place.evidence not in (None, root.given_path):
            continue
        path = root.path / (place.file or ".")
        if path.parent not in log_dirs:
            yield f"{source.shown_path(path)}: {finding.message}"


def _row(done: Collected) -> Row:
    from kctl.rows.verify import COLLECTED

    return COLLECTED(
        source=done.source,
        broker_id=done.broker_ids[0] if len(done.broker_ids) == 1 else None,
        broker_ids=done.broker_ids,
        files=done.files,
        bytes=done.bytes,
        seconds=round(done.seconds, 3),
        left_out=done.left_out,
        clock_offset_ms=done.clock_offset_ms,
        incomplete=done.incomplete,
    )


def collected_text(rows: Iterable[Row], page: Page) -> Iterator[str]:
    """A line a source, then the digest of the manifest."""
    for row in rows:
        if row["kind"] == "summary":
            yield f"{counted(row['files'], 'file')}, {size(row['bytes'])} in {row['folder']}"
            yield f"manifest.jsonl has sha256 {row['sha256']}: keep it elsewhere; `kctl collect verify` prints it again"
            continue
        ids = row["broker_ids"]
        assert isinstance(ids, list)
        owner = f" (broker {', '.join(map(str, ids))})" if ids else ""
        line = f"{page.style(str(row['source']), 'bold')}{owner}: {counted(row['files'], 'file')}, {size(row['bytes'])}"
        yield line + (f", {counted(row['left_out'], 'entry', 'entries')} left out" if row["left_out"] else "")
        if row["incomplete"]:
            yield page.style(f"    incomplete: {row['incomplete']}", "error")


@command(
    "verify", status="0 the copy is as it was made · 3 no manifest · 5 a file or the manifest was changed"
)
@click.argument("folder", type=click.Path(readable=False))
def verify(frame: Frame, folder: str) -> Outcome:
    """Check a copy against its manifest.

    Every file is read and held against its digest; files that are missing or were added are named, and so is a manifest
    that is not as it was sealed. Compare the digest that is printed with the one that `kctl collect` printed. FOLDER
    may be a file of `kctl collect pack`, which is unpacked below TMPDIR.

    $ kctl collect verify evidence
    $ kctl collect verify evidence.tar.zst
    """
    return Outcome(_verified(frame, folder), text=folding(verified_text))


def _verified(frame: Frame, folder: str) -> Iterator[Row]:
    from kctl.collect.archive import local_folder
    from kctl.collect.verification import Verified
    from kctl.collect.verification import verify as verify_folder
    from kctl.rows.verify import COLLECTION_SUMMARY

    begun, errors, verified = monotonic(), 0, Verified()
    for finding in verify_folder(Path(local_folder(folder)), verified, frame.progress()):
        errors += 1
        yield finding.row()
    yield COLLECTION_SUMMARY(
        folder=folder, files=verified.files, bytes=verified.bytes, seconds=round(monotonic() - begun, 3),
        sha256=verified.seal, errors=errors,
    )  # fmt: skip


def verified_text(rows: Iterable[Row], page: Page) -> Iterator[str]:
    """A line a finding, then one of all."""
    for row in rows:
        if row["kind"] == "finding":
            yield f"{row['file']}: {finding_line(row, page)}"
            continue
        seal = "without a seal" if row["sha256"] is None else f"seal {row['sha256']}"
        text = f"{counted(row['files'], 'file')}, {size(row['bytes'])}: "
        if row["errors"]:
            yield page.style(f"{text}{row['errors']:,} differ from the manifest, {seal}", "error")
        else:
            yield page.style(f"{text}as they were copied, {seal}", "good")


@command(
    "pack",
    status="0 written · 3 no manifest, or not written · 4 the file exists, or the copy has no seal · 5 a file was changed",
)
@click.argument("folder", type=click.Path(readable=False))
@option("--to FILE", "Write this file; its name ends with .tar.zst.", type=WRITTEN, required=True)
def pack(frame: Frame, folder: str, to: str) -> Outcome:
    """Write a copy into one file, which every command reads.

    The file is a tar, compressed by zstd, of the manifest and all that it names. Each file is held against its digest.
    In the place of a folder of evidence a command takes the file: it unpacks it below TMPDIR for as long as it runs.

    $ kctl collect pack evidence --to evidence.tar.zst
    $ kctl audit run evidence.tar.zst --out report
    """
    if not to.endswith(".tar.zst"):
        raise BadValue(f"--to {to}: does not end with .tar.zst", "by this name commands know what it is")
    return Outcome(_packed(frame, folder, to), text=folding(packed_text))


def _packed(frame: Frame, folder: str, to: str) -> Iterator[Row]:
    from kctl.collect.archive import Packed
    from kctl.collect.archive import pack as pack_folder
    from kctl.rows.verify import PACKED

    begun, packed = monotonic(), Packed()
    for finding in pack_folder(Path(folder), Path(to), packed, frame.progress()):
        yield finding.row()
    yield PACKED(
        file=to, files=packed.files, bytes=packed.bytes, size_in_bytes=packed.size_in_bytes, sha256=packed.sha256,
        seconds=round(monotonic() - begun, 3),
    )  # fmt: skip


def packed_text(rows: Iterable[Row], page: Page) -> Iterator[str]:
    """A line a finding, then the archive."""
    for row in rows:
        if row["kind"] == "finding":
            yield f"{row['file']}: {finding_line(row, page)}"
        else:
            yield f"{row['file']}: {counted(row['files'], 'file')}, {size(row['bytes'])} in {size(row['size_in_bytes'])}"
            yield f"sha256 {row['sha256']}"
