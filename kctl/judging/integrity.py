"""Integrity: are the bytes of each copy whole. The files themselves decide."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

from formats.values import Struct, field
from formats.words import counted
from kctl.evidence.copies import CUT_OFF as CUT_OFF_WORDS
from kctl.findings import Finding, Place
from kctl.findings import directories as directory_findings
from kctl.findings import evidence as evidence_findings
from kctl.findings import logs as log_findings
from kctl.findings import segments as segment_findings
from kctl.findings.manifest import CLOCK_MEASURED, CUT_OFF, HASHED
from kctl.findings.manifest import LEFT_OUT as LEFT_OUT_OF_COPY
from kctl.judging.fetching import GO_ON, log_dirs_of
from kctl.judging.judgement import Judgement, JudgementSubject, MissingEvidence, Question, Verdict
from kctl.rows import LEFT_OUT
from kctl.scan.options import Level

# Findings that say that something was there and was not read.
UNREADABLE = frozenset(
    finding_type.code
    for finding_type in (
        evidence_findings.UNREADABLE,
        evidence_findings.LINK_NOT_FOLLOWED,
        evidence_findings.NOT_A_FILE,
    )
)
# Findings that say that bytes were read whose records were not examined.
NOT_EXAMINED = frozenset({segment_findings.NOT_EXAMINED.code})
# Findings that say that something is not Kafka's, so that none of Kafka's rules decide.
NOT_KAFKAS = frozenset({evidence_findings.OF_ANOTHER_SYSTEM.code})
# Findings about bytes that are as their producer sent them.
OF_SOUND_BYTES = frozenset(
    {log_findings.TIMESTAMP_IN_FUTURE.code, directory_findings.SHUT_DOWN_POINT_BEHIND.code}
)
# Findings about a copy as a whole: of no bytes.
OF_NO_BYTES = frozenset({HASHED.code, LEFT_OUT_OF_COPY.code, CLOCK_MEASURED.code})
# What a folder must hold to be examined.
WANTED = "log directory, partition folder or segment"
NO_FILE_OF_KAFKAS = "neither a segment nor another file of a log directory"
NAME_ANOTHER = "name a segment, or a folder that holds one"
NOT_THERE = "no such file or directory"  # of a path of the command line: it may be misspelt


class ExaminedFile(Protocol):
    """A file that was examined."""

    place: Place


class _Problems(Struct):
    """The problems of one copy so far."""

    wrong: dict[str, int] = field(default_factory=dict)  # findings that are errors or warnings, by code
    unread: list[tuple[str | None, str]] = field(default_factory=list)  # files not read, and why
    empty: list[str] = field(default_factory=list)  # folders without anything to examine
    foreign: list[tuple[str | None, str, str]] = field(
        default_factory=list
    )  # files not Kafka's, why, what to do


# What each level of examination saw of a file, and what it left out.
EXAMINED_AT = {
    Level.HEADER: ("the headers of the batches", ("checksums of batches", "records")),
    Level.CRC: ("the headers and checksums of the batches", ("records",)),
}


class Integrity(Struct):
    """The judgement of bytes: give it every finding and every file, then ask for the judgements."""

    level: Level = Level.RECORDS
    _files: dict[JudgementSubject, int] = field(default_factory=dict)  # examined, of each copy
    _problems: dict[JudgementSubject, _Problems] = field(
        default_factory=dict
    )  # of copies with something to say; most are sound

    def finding(self, finding: Finding) -> None:
        """Take a finding of a check of files."""
        place = finding.place
        if finding.code in OF_NO_BYTES:
            return
        self._count(place, 0)
        if finding.code == evidence_findings.BROKER_FOLDER_EMPTY.code:
            self._of(place).empty.append(place.file or "")
        if finding.code == CUT_OFF.code:
            self._of(place).unread.append((place.file, CUT_OFF_WORDS))
        elif finding.code in UNREADABLE or finding.code in NOT_EXAMINED:
            self._of(place).unread.append((place.file, finding.message))
        elif finding.code in NOT_KAFKAS:
            self._of(place).foreign.append((place.file, finding.message, "use the tools of that system"))
        elif finding.code in OF_SOUND_BYTES:
            return
        elif finding.is_wrong:
            wrong = self._of(place).wrong
            wrong[finding.code] = wrong.get(finding.code, 0) + 1

    def file(self, place: Place) -> None:
        """Take a file that was examined from its first byte to its last."""
        self._count(place, 1)

    def item(self, item: Finding | ExaminedFile) -> None:
        """Take what a verification gives: a finding, or a file that was examined."""
        if isinstance(item, Finding):
            self.finding(item)
        else:
            self.file(item.place)

    def path(self, path: str, why: str = "could not be opened") -> None:
        """Take a path of the command line that could not be read."""
        self._of(Place(file=path)).unread.append((path, why))

    def nothing_in(self, path: str) -> None:
        """Take a folder of the command line in which nothing was found to examine."""
        self._of(Place(file=path)).empty.append(path)

    def no_file_of_kafkas(self, path: str) -> None:
        """Take a file of the command line that is none of a log directory."""
        self._of(Place(file=path)).foreign.append((path, NO_FILE_OF_KAFKAS, NAME_ANOTHER))

    def _count(self, place: Place, files: int) -> None:
        subject = _subject(place)
        self._files[subject] = self._files.get(subject, 0) + files

    def _of(self, place: Place) -> _Problems:
        self._count(place, 0)
        return self._problems.setdefault(_subject(place), _Problems())

    def judgements(self) -> Iterator[Judgement]:
        """A judgement a copy of a partition, and one for the files that belong to no partition."""
        for subject, files in sorted(self._files.items(), key=lambda item: _order(item[0])):
            yield _judgement(subject, files, self._problems.get(subject) or _Problems(), self.level)


def _subject(place: Place) -> JudgementSubject:
    return JudgementSubject(place.topic, place.partition, place.broker_id, place.moment)


def _order(subject: JudgementSubject) -> tuple[str, int, int, str]:
    topic, partition, broker_id, moment = subject
    return (
        topic or "",
        -1 if partition is None else partition,
        -1 if broker_id is None else broker_id,
        moment or "",
    )


def _judgement(subject: JudgementSubject, files: int, problems: _Problems, level: Level) -> Judgement:
    missing = tuple(
        MissingEvidence(
            f"bytes of {path or 'a file'}",
            subject.broker_id,
            subject.moment,
            why,
            "" if why == NOT_THERE else GO_ON if why == CUT_OFF_WORDS else "copy the file again",
        )
        for path, why in dict.fromkeys(problems.unread)
    )
    if problems.wrong:
        codes = ", ".join(f"{count} {code}" for code, count in sorted(problems.wrong.items()))
        return Judgement(Question.INTEGRITY, Verdict.DAMAGED, subject, f"the checks found {codes}", missing)
    if problems.unread:
        path, why = problems.unread[0]
        reason = f"{len(problems.unread):,} of {counted(len(problems.unread) + files, 'file')} could not be read: {path or ''} {why}"
        return Judgement(Question.INTEGRITY, Verdict.UNREADABLE, subject, reason, missing)
    if problems.empty:
        return Judgement(
            Question.INTEGRITY,
            Verdict.COULD_NOT_JUDGE,
            subject,
            f"{', '.join(problems.empty)}: there is no {WANTED}",
            tuple(log_dirs_of(subject.broker_id, path, subject.moment) for path in problems.empty),
        )
    if problems.foreign:
        path, why, get = problems.foreign[0]
        return Judgement(
            Question.INTEGRITY,
            Verdict.COULD_NOT_JUDGE,
            subject,
            f"{path}: {why}",
            (MissingEvidence("Kafka's segments", subject.broker_id, subject.moment, why, get),),
        )
    if level in EXAMINED_AT:
        examined, left_out = EXAMINED_AT[level]
        return Judgement(
            Question.INTEGRITY,
            Verdict.COULD_NOT_JUDGE,
            subject,
            f"{examined} of {_files(files)} were examined, and nothing wrong was found in them",
            tuple(
                MissingEvidence(
                    what, subject.broker_id, subject.moment, LEFT_OUT, "kctl segment verify --level records"
                )
                for what in left_out
            ),
        )
    return Judgement(
        Question.INTEGRITY, Verdict.SOUND, subject, f"every byte of {_files(files)} was examined"
    )


def _files(count: int) -> str:
    return counted(count, "file")
