"""Rows about judgements, and their counts per question."""

from kctl.rows import RowType

QUESTIONS = "integrity|divergence|loss|leadership|tier|transactions|start"

JUDGEMENT = RowType(f"""
    judgement: The verdict on one question about one subject.
    question   {QUESTIONS}
    topic      string?   null if the subject is not a partition
    partition?
    broker_id  integer?  null if the subject is not a broker or its copy
    moment?
    verdict    lost|damaged|unreadable|could_not_judge|sound
    reason     string    one sentence
    missing    array     evidence that was not examined: {{what, broker_id, moment, why, get}}
""")

COVERAGE = RowType(f"""
    coverage: Number of subjects per verdict for one question.
    question         {QUESTIONS}
    judged           integer  subjects with an answer: sound, damaged or lost
    sound            integer  all evidence that the question needs was examined, and nothing is wrong
    lost             integer  committed records are gone
    damaged          integer  bytes, copies, elections or the tier are wrong
    unreadable       integer  the data exist but could not be read
    could_not_judge  integer  the evidence lacks what is needed for an answer
    missing          array    the same things grouped: {{what, broker_id, moment, why, get, subjects}}
""")
