"""Rows that say how far an answer carries: judgements, and their counts a question."""

from kctl.rows import RowType

QUESTIONS = "integrity|divergence|loss|leadership|tier|transactions"

JUDGEMENT = RowType(f"""
    judgement: The verdict on one question about one subject.
    question   {QUESTIONS}
    topic      string?   null where the subject is not a partition
    partition?
    broker_id  integer?  null where the subject is not a broker or its copy
    moment?
    verdict    lost|damaged|unreadable|could_not_judge|sound
    reason     string    one sentence
    missing    array     what would have to be examined: {{what, broker_id, moment, why, get}}
""")

COVERAGE = RowType(f"""
    coverage: How many subjects of a question got which verdict.
    question         {QUESTIONS}
    judged           integer  subjects with an answer: sound, damaged or lost
    sound            integer  everything that the question needs was examined, and nothing is wrong
    lost             integer  something committed is gone
    damaged          integer  bytes, copies, elections or the tier are wrong
    unreadable       integer  it is there and could not be read
    could_not_judge  integer  what decides is not in the evidence
    missing          array    the same things grouped: {{what, broker_id, moment, why, get, subjects}}
""")
