"""Tier: do metadata, objects and local logs agree. Metadata and objects decide."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from formats.values import Struct, field
from kctl.findings import Finding
from kctl.findings import remote as tier_findings
from kctl.judging.judgement import Judgement, JudgementSubject, MissingEvidence, Question, Verdict
from kctl.model import TopicPartition

UNREADABLE = frozenset({tier_findings.TIER_UNREADABLE.code, tier_findings.METADATA_UNREADABLE.code})
METADATA_REPLICA = "replica of the __remote_log_metadata partition that names the segments"
NOT_DECIDED = {
    tier_findings.METADATA_ABSENT.code: (
        METADATA_REPLICA,
        "no metadata record of the partition is in the evidence",
    ),
    tier_findings.OBJECT_ENCRYPTED.code: (
        "content of the encrypted objects",
        "objects are encrypted, so their content was not examined",
    ),
}
FETCH_METADATA = "kctl collect --to more --topic __remote_log_metadata ssh://BROKER/LOG_DIR"
Key = tuple[str | None, int | None]


class TierJudge(Struct):
    """The judgement of a tier: give it every finding and every partition, then ask for the judgements."""

    has_objects: bool  # a tier was found; without one the metadata were compared with the local logs alone
    reads_content: bool = True
    _findings: dict[Key, dict[str, list[Finding]]] = field(default_factory=dict)
    _examined: dict[Key, str | None] = field(default_factory=dict)
    _segments: Counter[Key] = field(default_factory=Counter)

    def finding(self, finding: Finding) -> None:
        """Take a finding of the audit."""
        key = finding.place.topic, finding.place.partition
        self._findings.setdefault(key, {}).setdefault(finding.code, []).append(finding)

    def partition(self, partition: TopicPartition, segments: int, untold: str | None) -> None:
        """Take a partition whose metadata name so many segments, and what of the metadata could not be read."""
        key = partition.topic, partition.partition
        self._segments[key] += segments
        self._examined[key] = self._examined.get(key) or untold
        self._findings.setdefault(key, {})

    def judgements(self) -> Iterator[Judgement]:
        """A judgement a partition, and one for what is no tiered partition where something is wrong with it."""
        for key, findings in sorted(
            self._findings.items(), key=lambda item: (item[0][0] or "", item[0][1] or 0)
        ):
            judgement = self._judgement(JudgementSubject(*key), findings)
            is_wrong = judgement.verdict in (Verdict.DAMAGED, Verdict.UNREADABLE)
            is_open = key[1] is not None and judgement.verdict is Verdict.COULD_NOT_JUDGE
            if key in self._examined or is_wrong or is_open:
                yield judgement

    def _judgement(self, subject: JudgementSubject, findings: dict[str, list[Finding]]) -> Judgement:
        key = subject[:2]
        wrong = Counter(
            finding.code
            for findings_of_code in findings.values()
            for finding in findings_of_code
            if finding.is_wrong and finding.code not in UNREADABLE
        )
        missing = tuple(self._missing(subject, findings))

        def judged(verdict: Verdict, reason: str) -> Judgement:
            return Judgement(Question.TIER, verdict, subject, reason, missing)

        if wrong:
            codes = ", ".join(f"{count} {code}" for code, count in sorted(wrong.items()))
            return judged(Verdict.DAMAGED, f"the audit found {codes}")
        unread = next((findings[code][0] for code in sorted(UNREADABLE & findings.keys())), None)
        if unread is not None:
            return judged(Verdict.UNREADABLE, unread.message)
        if missing:
            return judged(Verdict.COULD_NOT_JUDGE, missing[0].why)
        if key in self._examined and not self._segments[key]:
            return judged(Verdict.SOUND, "its metadata were read, and name no segment")
        return judged(Verdict.SOUND, "every remote segment, its metadata and its objects were examined")

    def _missing(
        self, subject: JudgementSubject, findings: dict[str, list[Finding]]
    ) -> Iterator[MissingEvidence]:
        untold = self._examined.get(subject[:2])
        if untold:
            yield MissingEvidence(METADATA_REPLICA, None, None, untold, FETCH_METADATA)
        for code, (name, why) in NOT_DECIDED.items():
            if code in findings and not (untold and code == tier_findings.METADATA_ABSENT.code):
                yield MissingEvidence(name, None, None, why, _fetch(code))
        if not self.has_objects:
            yield MissingEvidence(
                f"segment objects of {'an unknown partition' if subject.topic is None else f'{subject.topic}-{subject.partition}'}",
                why="no tier was given or found",
                get="kctl remote audit EVIDENCE --tier URI",
            )
        elif not self.reads_content:
            yield MissingEvidence(
                "content of the objects",
                why="the objects were listed and not read",
                get="kctl remote audit EVIDENCE without --no-content",
            )


def _fetch(code: str) -> str:
    if code == tier_findings.METADATA_ABSENT.code:
        return FETCH_METADATA
    return "decrypt the objects with the key of the cluster, and audit the copy with --tier FOLDER"
