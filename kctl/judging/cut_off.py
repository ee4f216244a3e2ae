"""Judgements on evidence that was copied in part: what is missing in them was cut off, and how the copy goes on."""

from __future__ import annotations

from kctl.evidence.copies import CUT_OFF
from kctl.evidence.model import FoundEvidence
from kctl.judging.fetching import GO_ON, NOT_THERE
from kctl.judging.judgement import Judgement
from kctl.model import TopicPartition


def with_cut_off(judgement: Judgement, evidence: FoundEvidence) -> Judgement:
    """The judgement, with `the copy was cut off` as the reason where that is why a copy is missing."""
    topic, partition = judgement.subject.topic, judgement.subject.partition
    if not evidence.cut_off or topic is None or partition is None:
        return judgement
    subject = TopicPartition(topic, partition)
    missing = tuple(
        part._replace(why=CUT_OFF, get=GO_ON)
        if part.broker_id is not None
        and part.why == NOT_THERE
        and evidence.was_cut_off(subject, part.broker_id)
        else part
        for part in judgement.missing
    )
    return judgement._replace(missing=missing)
