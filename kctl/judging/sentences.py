"""The sentences that say how far an answer carries: the only place that composes "sound" and "nothing is lost"."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

SUBJECTS = {
    "integrity": ("copy", "copies"),
    "divergence": ("partition", "partitions"),
    "loss": ("partition", "partitions"),
    "leadership": ("partition", "partitions"),
    "tier": ("partition", "partitions"),
    "transactions": ("partition", "partitions"),
    "start": ("broker", "brokers"),
}
ANSWERS = {
    "integrity": {"sound": "sound", "damaged": "damaged"},
    "divergence": {"sound": "in agreement", "damaged": "diverged or damaged"},
    "loss": {"sound": "lost no committed record", "lost": "lost committed records"},
    "leadership": {"sound": "with every election known and clean", "damaged": "with an unclean election"},
    "tier": {
        "sound": "sound in the tier",
        "damaged": "with faults in the tier",
        "lost": "with records lost in the tier",
    },
    "transactions": {"sound": "without a hanging transaction", "damaged": "with a hanging transaction"},
    "start": {
        "sound": "would start and destroy nothing",
        "damaged": "would not start, or lose a log directory",
        "lost": "would destroy records that no other copy holds",
    },
}
OPEN = {"unreadable": "could not be read", "could_not_judge": "not judged"}
NAMED = 3  # missing things that a sentence names


def coverage_sentence(coverage: Mapping[str, object]) -> str:
    """One sentence for a row of kind `coverage`: "12 partitions sound; 3 not judged: no replica of broker 2"."""
    question = str(coverage["question"])
    counts = {key: value for key, value in coverage.items() if isinstance(value, int) and value}
    parts = []
    for verdict in ("lost", "damaged", "sound"):
        if verdict in counts:
            parts.append(
                f"{counts[verdict]:,} {_subjects(question, counts[verdict])} {ANSWERS[question].get(verdict, verdict)}"
            )
    for verdict, words in OPEN.items():
        if verdict in counts:
            subjects = "" if parts else f" {_subjects(question, counts[verdict])}"
            parts.append(f"{counts[verdict]:,}{subjects} {words}")
    if not parts:
        return f"{question}: nothing was judged, the evidence has nothing on it"
    missing = coverage.get("missing")
    named = _named(missing) if isinstance(missing, Sequence) and "could_not_judge" in counts else ""
    return f"{question}: {'; '.join(parts)}{named}"


def no_loss(coverages: Iterable[Mapping[str, object]], *questions: str) -> str:
    """That nothing is lost, where these questions were judged of every subject and found no loss; else empty."""
    judged = {str(coverage["question"]): coverage for coverage in coverages}
    for question in questions:
        if question not in judged or any(judged[question][verdict] for verdict in ("lost", *OPEN)):
            return ""
    return "Nothing is lost. "


def audit_sentence(wrong: Sequence[str], coverages: Sequence[Mapping[str, object]]) -> str:
    """What an audit says in the end: what is wrong, or that nothing is; how much was judged and what was not."""
    judged = [
        of_subjects(str(row["question"]), int(str(row["judged"]))) for row in coverages if row["judged"]
    ]
    open_ = [
        f"{of_subjects(str(row['question']), count)}{_named(row['missing']) if isinstance(row['missing'], Sequence) else ''}"
        for row in coverages
        if (count := sum(int(str(row[verdict])) for verdict in OPEN))
    ]
    nothing = [
        str(row["question"]) for row in coverages if not row["judged"] and not any(row[v] for v in OPEN)
    ]
    clauses = list(wrong)
    if not clauses and not judged:
        clauses.append("nothing could be judged")
    elif not clauses:
        clauses.append(f"nothing wrong was found in what was judged: {', '.join(judged)}")
    if open_:
        clauses.append(f"not judged: {', '.join(open_)}")
    if nothing:
        clauses.append(f"the evidence has nothing on {', '.join(nothing)}")
    text = "; ".join(clauses)
    return f"{text[0].upper()}{text[1:]}."


def of_subjects(question: str, count: int) -> str:
    """A question and how many subjects are meant: "integrity of 3 copies"."""
    return f"{question} of {count:,} {_subjects(question, count)}"


def _subjects(question: str, count: int) -> str:
    return SUBJECTS[question][count != 1]


def _named(missing: Sequence[Mapping[str, object]]) -> str:
    names = list(dict.fromkeys(str(missing_row["what"]) for missing_row in missing))
    if not names:
        return ""
    and_more = f" and {len(names) - NAMED:,} more" if len(names) > NAMED else ""
    return f" (missing: {', '.join(names[:NAMED])}{and_more})"
