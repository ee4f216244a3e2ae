"""Which of the folders that Kafka's tests write are not valid, and why: an error of kctl on one of them is right."""

from __future__ import annotations

import re
from typing import NamedTuple


class Reason(NamedTuple):
    """Errors that are right of the folders of some tests."""

    tests: str
    """An expression for the beginning of the test's name, without its package."""
    codes: frozenset[str]
    reason: str


def _row(tests: str, codes: str, reason: str) -> Reason:
    return Reason(tests, frozenset(codes.split()), reason)


TABLE = (
    # damage that a test makes
    _row(r"LogCleaner(?:Lag)?IntegrationTest\.testMarksPartitionsAsOffline", "batch-illegal-length startup-recovery-cuts", "the test overwrites batches"),
    _row(r"LogCleanerTest\.testCorruptMessageSizeLargerThanBytesAvailable", "segment-ends-torn segment-missing", "the test cuts a segment short"),
    _row(r"LogCleanerTest\.testMessageLargerThanMaxMessageSizeWithCorruptHeader", "batch-illegal-magic startup-recovery-cuts", "the test overwrites a header"),
    _row(r"(?:Log|UnifiedLog)Test\.testAppendToOrReadFromLogInFailedLogDir", "txnindex-entry-missing", "the log directory fails before the index is written"),
    _row(r"ProducerStateManagerTest\.testRemove(?:All)?StraySnapshots", "snapshot-malformed", "the test makes snapshots of no bytes"),
    # what no broker writes
    _row(r"(?:Log|UnifiedLog)Test\.test(?:DegenerateSegmentSplit|SplitOnOffsetOverflow)", "segment-offset-overflow epoch-entry-missing", "the test writes the segments itself: offsets too far apart, no epochs"),
    _row(r"LogCleanerTest\.testSegmentWithOffsetOverflow", "epoch-entry-missing", "the test writes the segments itself, without epochs"),
    _row(r"LogSegmentTest\.testAppendFromFile", "segment-offset-overflow", "the test fills a file beyond what a segment holds"),
    _row(r"LogSegmentTest\.testRecoverTransactionIndex", "batch-leader-epoch-goes-back txnindex-entry-missing txnindex-entry-wrong", "the test appends batches of an earlier epoch, and recovers with a state that the log does not have"),
    _row(r"LogSegmentsTest\.", "segment-missing", "segments without batches or indexes, under any name"),
    _row(r"(?:Log|UnifiedLog)Test\.should(?:TruncateLeaderEpochs|UpdateOffsetForLeaderEpochs)WhenDeletingSegments", "epoch-entry-missing epoch-entry-wrong", "the test sets epochs that the batches do not have"),
    _row(r"(?:Log|UnifiedLog)Test\.test(?:DuplicateAppendToFollower|MultipleProducersWithDuplicatesInSingleAppend)", "producer-sequence-duplicate", "the test has a follower append a producer's batch twice"),
    _row(r"UnifiedLogTest\.testTransactionIsOngoingAndVerificationGuard", "producer-sequence-duplicate", "a coordinator's appends, to a topic that is none of a coordinator"),
    _row(r"Kafka(?:Metadata|Raft)LogTest\.", "kraft-snapshot-incomplete", "the tests write snapshots without header and footer"),
    _row(r"Kafka(?:Metadata|Raft)LogTest\.test(?:SnapshotDeletion|Startup)WithInvalidSnapshotState", "kraft-snapshot-missing", "the test deletes the snapshot at which the log begins"),
    _row(r"DumpLogSegmentsTest\.", "segment-offset-below-name batch-offsets-go-back batch-leader-epoch-goes-back", "the test fills a segment of another name"),
    # one gap between segments, which a lost segment would leave too
    _row(r"(?:LogLoader|Log|UnifiedLog)Test\.test(?:OverCompactedLogRecovery|ReadAtLogGap)", "segment-missing", "a follower appends at a later offset, once"),
    _row(r"LogCleanerTest\.test(?:BuildOffsetMapFakeLarge|CleaningBeyondMissingOffsets)", "segment-missing", "the test appends at a later offset, once"),
)  # fmt: skip


def reason_of(test: str, code: str) -> Reason | None:
    """Why an error of this code is right of what this test wrote; None if it is not."""
    class_and_test = re.sub(r"^(?:[a-z]\w*\.)+", "", test)
    matching = (row for row in TABLE if code in row.codes and re.match(row.tests, class_and_test))
    return next(matching, None)
