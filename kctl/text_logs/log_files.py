"""The files of brokers' logs, as they were found: which broker wrote them, and how their lines are laid out."""

from formats.broker_logs.layouts import LineLayout
from formats.values import Struct
from kctl.findings import Place


class LogFile(Struct, frozen=True):
    """One file of a broker's log."""

    path: str
    file: str
    """As rows name it."""
    kind: str
    broker_id: int | None
    layout: LineLayout
    first_millis: int | None
    """Local time of its first record."""
    is_utc: bool = False
    """Whether its times name their offset, so that no zone has to be known."""
    day: int | None = None
    """Midnight of the day that its name says, where its lines say the time of day alone."""
    evidence: str | None = None
    writers: frozenset[int] = frozenset()
    """The brokers that the lines at its start and at its end name as their writers; of files that several write to
    those of all of them."""
    container: bytes | None = None
    """The container whose lines these are, where several print into the file."""
    is_first: bool = False
    """Whether lines before the first that names a container are its own."""

    part: str = ""
    """A file that holds its lines alone, where they were taken out of what several printed into."""
    printed_by: str | None = None
    """The one pod, container or host that an export names for its lines."""
    broker_by_name: str | None = None
    """The name that alone tells the broker."""

    @property
    def place(self) -> Place:
        """Where findings about the file are."""
        return Place(broker_id=self.broker_id, file=self.file, evidence=self.evidence)

    @property
    def is_without_date(self) -> bool:
        """Whether nothing says on which day its lines were written."""
        return not (self.layout.has_date or self.is_utc or self.day is not None)


class LogSource(Struct, frozen=True):
    """The parts of one log of one broker, oldest first."""

    broker_id: int | None
    kind: str
    files: tuple[LogFile, ...]
