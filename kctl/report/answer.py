"""The first screen, as HTML and as Markdown: what happened, what to run next, what is lost, and what was not judged."""

from __future__ import annotations

import shlex
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from typing import Any

from formats.values import Struct
from formats.words import counted
from kctl.audit.tables import Tables
from kctl.findings.remote import COPY_FAILED
from kctl.judging.judgement import Verdict, for_all
from kctl.judging.sentences import ANSWERS, audit_sentence, coverage_sentence, no_loss, of_subjects
from kctl.model import StoredRow, command_line
from kctl.replica.loss.words import (
    HANDOVER,
    cause_words,
    listed,
    lost_sentences,
    offsets_of,
    still_on,
    where_else,
)
from kctl.report.copies import failed_copies
from kctl.report.html import UNPRINTABLE, Html, element, link, more_rows, size, slug, table
from kctl.report.incidents import Incident, Key, incidents, is_consequence
from kctl.times import iso

WRONG = frozenset({"lost", "damaged"})
OPEN = frozenset({"could_not_judge", "unreadable"})
MARKUP = frozenset("\\`*|[")  # characters that Markdown reads as markup
MOST_CODES = 3  # in a sentence
MOST_CAUSES = 5  # incidents that are listed
MOST_LOSSES = 10  # rows of the table on the first screen
MOST_FOLDED = 500
MOST_MISSING = 12
LOST_COLUMNS = [
    "partition",
    "offsets",
    "records",
    "class",
    "first – last (UTC)",
    "cause",
    "since epoch",
    "still on",
]
MISSING_COLUMNS = ["question", "of", "why", "missing", "get it with"]
BY_AUDIT = "audit sql"  # of findings that no command makes but an audit
# The command that shows a finding, by the beginning of its code; the first match counts.
COMMANDS = {
    "remote-": "remote audit", "tier-": "remote audit",
    **dict.fromkeys(
        ["replica-copy-unreadable", "replica-hole-everywhere", "replica-leader-", "replica-present-", "replica-unclean-"],
        "replica loss",
    ),
    "replica-": "replica compare", "hanging-transaction": "transactions hanging",
    **dict.fromkeys(
        [
            "unclean-", "isr-", "zombie-", "truncated-below-", "broker-ended", "log-dir-failed", "thread-died",
            "partition-uncleanable", "log-zone",
        ],
        "state-log timeline",
    ),
    **dict.fromkeys(
        [
            "broker-id-", "cluster-id-", "directory-id-not-", "metadata-version-", "replicas-under-", "stray-", "topic-id-of-",
            "voter-directory-", "voter-set-of-", "compaction-", "retention-",
        ],
        BY_AUDIT,
    ),
    "": "segment verify",
}  # fmt: skip
START = "kctl log-dir start "
OF_TIERS = ("remote-", "tier-")
OF_STARTS = frozenset(
    {
        "startup-recovery-cuts", "replica-damaged-copy", "log-dir-foreign-folder", "log-dir-duplicate-partition",
        "checkpoint-malformed", "meta-properties-malformed", "cluster-id-differs", "node-id-differs", "voter-set-differs",
        "log-dirs-of-two-brokers", "directory-id-twice", "kraft-over-zookeeper-dir", "zookeeper-over-kraft-dir",
        "kraft-no-partition-metadata", "metadata-version-of-newer-software",
    }
)  # fmt: skip
"""Findings that decide whether a broker starts, or what its start cuts."""


class UnansweredQuestion(Struct, frozen=True):
    """Evidence whose absence kept a question about some subjects from being answered."""

    question: str
    subjects: tuple[str, ...]
    reason: str
    what: str
    get: str

    def cells(self) -> list[str]:
        """The cells of a row under `MISSING_COLUMNS`."""
        more = f" and {len(self.subjects) - 3:,} more" if len(self.subjects) > 3 else ""
        return [self.question, ", ".join(self.subjects[:3]) + more, self.reason, self.what, self.get]


class AuditAnswer(Struct, frozen=True):
    """The content of the first screen."""

    sentences: tuple[str, ...]
    severity: str  # error, warning, good; "" if nothing is known to be wrong but not everything was judged
    commands: tuple[tuple[str, str], ...]  # the command, and what it shows
    losses: tuple[StoredRow, ...]
    missing: tuple[UnansweredQuestion, ...]
    coverages: tuple[str, ...]
    unasked: tuple[str, ...]  # questions without a judgement
    incidents: tuple[tuple[str, str], ...] = ()
    """What happened where it was more than one thing, by what it cost: a line, and where the page has more."""
    more_incidents: str = ""


def answer_of(tables: Tables, causes: Sequence[Incident]) -> AuditAnswer:
    losses = sorted(
        (row for cause in causes for row in cause.losses),
        key=lambda row: (row["class"] != "committed", row["topic"], row["partition"], row["from_offset"]),
    )
    coverages, missing, wrong = _judged(tables)
    partitions = {key for cause in causes for key in cause.partitions}
    amounts, places = _errors_and_warnings(tables, partitions, without=COPY_FAILED.code)
    copies = failed_copies(tables)
    gaps = _gaps(tables)
    if not gaps and not any(code.startswith(OF_TIERS) for _, code in amounts):
        wrong["tier"] -= copies.partitions  # which is no more than their sentence says
    is_list = len(causes) > 1
    sentences = [] if is_list else [cause.sentence() for cause in causes]
    if losses:
        sentences += lost_sentences(losses)
    elif is_list:
        sentences.append(f"{counted(len(causes), 'incident')} happened.")
    # A question whose wrong partitions the incidents name already is not repeated.
    sentences += [
        f"{_capital(coverage_sentence(coverage))}."
        for coverage in coverages
        if not partitions.issuperset(wrong[str(coverage["question"])])
    ]
    sentences += gaps
    if copies.total:
        judged = () if losses or wrong["tier"] else coverages
        sentences.append(f"{no_loss(judged, 'loss', 'tier')}{copies.sentence()}")
    if amounts:
        sentences.append(_amounts_sentence(amounts, len(places)))
    if coverages and not sentences:
        sentences.append(audit_sentence((), coverages))
    elif open_ := [
        of_subjects(str(coverage["question"]), number)
        for coverage in coverages
        if (number := sum(coverage[verdict] for verdict in OPEN))
        and f"{_capital(coverage_sentence(coverage))}." not in sentences
    ]:
        sentences.append(f"Not judged: {', '.join(open_)}.")
    undone = [
        str(part["name"])
        for part in tables.summary["parts"] or ()
        if str(part["state"]).startswith("could not")
    ]
    if undone:
        sentences.append(f"Not everything could be examined: {', '.join(undone)}.")
    if not sentences:
        sentences.append("Nothing was judged: the tables of this audit have no verdict.")
    is_lost = any(row["cause"] != HANDOVER for row in losses)
    is_wrong = bool(is_lost or any(wrong.values()) or any(severity == "error" for severity, _ in amounts))
    severity = "error" if is_wrong else "warning" if causes or amounts or copies.total else ""
    if not severity and coverages and not missing and not undone:
        severity = "good"
    return AuditAnswer(
        tuple(sentences), severity, tuple(_commands(tables, losses, causes, missing)), tuple(losses), tuple(missing),
        tuple(f"{_capital(coverage_sentence(coverage))}." for coverage in coverages),
        tuple(question for question in ANSWERS if question not in {coverage["question"] for coverage in coverages}),
        tuple((cause.line(), cause.anchor) for cause in causes[:MOST_CAUSES]) if is_list else (),
        f"and {counted(len(causes) - MOST_CAUSES, 'more incident')}" if len(causes) > MOST_CAUSES else "",
    )  # fmt: skip


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def _errors_and_warnings(
    tables: Tables, of_incidents: set[Key], *, without: str = ""
) -> tuple[Counter[tuple[str, str]], set[Key]]:
    """Errors and warnings that follow from no incident, counted by severity and code; and their partitions."""
    amounts: Counter[tuple[str, str]] = Counter()
    places: set[Key] = set()
    for row in tables.rows("findings", columns=["severity", "code", "topic", "partition"]):
        if row["severity"] != "info" and row["code"] != without and not is_consequence(row, of_incidents):
            amounts[row["severity"], row["code"]] += 1
            if row["partition"] is not None:
                places.add((row["topic"], row["partition"]))
    return amounts, places


def _amounts_sentence(amounts: Counter[tuple[str, str]], partitions: int) -> str:
    """`34 errors and 2 warnings in 12 partitions, most often remote-object-missing (7), ...`."""
    amount_words = [
        counted(total, noun)
        for noun in ("error", "warning")
        if (total := sum(amount for (severity, _), amount in amounts.items() if severity == noun))
    ]
    where = f" in {counted(partitions, 'partition')}" if partitions else ""
    often = sorted(amounts, key=lambda key: (key[0] != "error", -amounts[key], key[1]))
    codes = ", ".join(f"{code} ({amounts[severity, code]:,})" for severity, code in often[:MOST_CODES])
    is_all = len(often) <= MOST_CODES
    return f"{' and '.join(amount_words)}{where}{':' if is_all else ', above all'} {codes}."


def _gaps(tables: Tables) -> list[str]:
    """A sentence about offsets that neither the tier nor a local log serves; empty without any."""
    gaps = [
        (f"{row['topic']}-{row['partition']}", start, end)
        for row in tables.rows("tier_partitions", columns=["topic", "partition", "gaps"])
        for start, end in listed(row["gaps"])
    ]
    if not gaps:
        return []
    total = sum(end - start for _, start, end in gaps)
    named = ", ".join(f"[{start:,}, {end:,}) of {name}" for name, start, end in gaps[:MOST_CODES])
    more = f" and {counted(len(gaps) - MOST_CODES, 'more range')}" if len(gaps) > MOST_CODES else ""
    return [f"{counted(total, 'offset')} of tiered partitions are served by nothing: {named}{more}."]


def _judged(tables: Tables) -> tuple[list[dict[str, Any]], list[UnansweredQuestion], dict[str, set[Key]]]:
    """From the table of judgements: a coverage row a question; what was missing, the most subjects first; and the
    partitions of each question of which something is wrong."""
    counts: dict[str, Counter[str]] = {}
    wrong: dict[str, set[Key]] = defaultdict(set)
    grouped: dict[tuple[str, str, str, str], list[str]] = defaultdict(list)
    for row in tables.rows("judgements"):
        counts.setdefault(row["question"], Counter())[row["verdict"]] += 1
        if row["verdict"] in WRONG:
            wrong[row["question"]].add((row["topic"], row["partition"]))
        if row["verdict"] in OPEN:
            lacking = listed(row["missing"]) or [{"what": "", "get": ""}]
            for lack in lacking:
                grouped[
                    row["question"],
                    row["reason"],
                    lack["what"],
                    for_all(lack["get"], row["topic"], row["partition"]),
                ].append(_subject(row))
    missing = [
        UnansweredQuestion(question, tuple(subjects), *rest)
        for (question, *rest), subjects in grouped.items()
    ]
    coverages = [
        {
            "question": question, "judged": verdicts.total() - sum(verdicts[verdict] for verdict in OPEN),
            **{str(verdict): verdicts[verdict] for verdict in Verdict},
            "missing": [{"what": lack.what} for lack in missing if lack.question == question and lack.what],
        }
        for question, verdicts in counts.items()
    ]  # fmt: skip
    return coverages, sorted(missing, key=lambda lack: (-len(lack.subjects), lack.question, lack.what)), wrong


def _subject(row: StoredRow) -> str:
    words = [] if row["topic"] is None else [f"{row['topic']}-{row['partition']}"]
    words += [] if row["broker_id"] is None else [f"broker {row['broker_id']}"]
    words += [] if row["moment"] is None else [f"copy '{row['moment']}'"]
    return " ".join(words) or "the evidence"


def _commands(
    tables: Tables,
    losses: Sequence[StoredRow],
    causes: Sequence[Incident],
    missing: Sequence[UnansweredQuestion],
) -> Iterator[tuple[str, str]]:
    """Two or three complete commands to run next, each with what it shows."""
    if any(part["name"] == "join" for part in tables.summary["parts"] or ()):
        statement = "SELECT * FROM findings WHERE severity <> 'info'"
        yield _sql(tables, statement), "what is wrong, with the broker that holds it"
        return
    chosen: list[tuple[str, str]] = []
    if losses:
        first = losses[0]
        where = "--topic", first["topic"], "--partition", str(first["partition"])
        if any(listed(row["recoverable_from"]) for row in losses):
            purpose = "write the lost records that copies still hold to files"
            chosen.append((_command(tables, "replica loss", "--export", "lost"), purpose))
        command = _command(tables, "replica explain", *where, "--offset", str(first["from_offset"]))
        chosen.append((command, "the history of the first lost offset, with its proofs"))
    if causes:
        topic, partition = causes[0].partitions[0]
        where = "--topic", topic, "--partition", str(partition)
        chosen.append((_command(tables, "state-log timeline", *where), "who led when, line by line"))
    amounts, _ = _errors_and_warnings(tables, {key for cause in causes for key in cause.partitions})
    if len(chosen) < 2:
        for _, code in sorted(amounts, key=lambda key: (key[0] != "error", -amounts[key], key[1]))[:1]:
            verb = next(verb for begins, verb in COMMANDS.items() if code.startswith(begins))
            purpose = f"every place of {code} and its surroundings"
            if verb == BY_AUDIT:
                statement = f"SELECT * FROM findings WHERE code = '{code}'"  # noqa: S608  # it is shown, not run
                chosen.append((_sql(tables, statement), f"every place of {code}"))
            elif code == COPY_FAILED.code and failed_copies(tables).leftovers:
                plan = _command(tables, verb, "--plan-cleanup", "orphans.jsonl")
                chosen.append((plan, "writes down what can be removed from the tier; nothing is deleted"))
            else:
                chosen.append((_command(tables, verb), purpose))
            chosen.append((f"kctl finding {code}", "what it means and what to do"))
    elsewhere = where_else(losses)
    if elsewhere or any(code in OF_STARTS for _, code in amounts):
        purpose = (
            f"{elsewhere[0].lower()}{elsewhere[1:].removesuffix('.')}"
            if elsewhere
            else "whether each broker starts, and what its start would cut"
        )
        chosen.insert(0 if elsewhere else 1, (_command(tables, "log-dir start"), purpose))
    if len(chosen) < 3 and missing and missing[0].get:
        chosen.append(
            (missing[0].get, f"to judge {of_subjects(missing[0].question, len(missing[0].subjects))}")
        )
    if not chosen:
        chosen.append((_sql(tables, "SELECT * FROM judgements"), "every verdict with its reason"))
    yield from chosen[:3]


def _command(tables: Tables, verb: str, *more: str) -> str:
    """A command over the evidence of the audit with its options, and more; a timeline takes no moments."""
    summary = tables.summary
    options = [
        word
        for option in summary.get("options") or ()
        if verb != "state-log timeline" or option[0] != "--moment"
        for word in option
    ]
    return command_line(f"kctl {verb}", shlex.split(summary["evidence"]), [*options, *more])


def _sql(tables: Tables, statement: str) -> str:
    return f'{command_line("kctl audit sql", [str(tables.folder)])} "{statement}"'


def loss_cells(row: StoredRow) -> list[object]:
    """The cells of a loss under `LOST_COLUMNS`."""
    first, last = row["first_timestamp"], row["last_timestamp"]
    when = ""
    if first is not None and last is not None:
        start, end = iso(first)[:23].replace("T", " "), iso(last)[:23].replace("T", " ")
        when = f"{start} – {end[11:] if start[:10] == end[:10] else end}"
    records = row["records"]
    if records is None:
        records = (
            "unknown" if row["to_offset"] is None else f"up to {row['to_offset'] - row['from_offset']:,}"
        )
    else:
        records = f"{records:,}"
    epoch = "unknown" if row["lost_in_epoch"] is None else row["lost_in_epoch"]
    places = ", ".join(still_on(row)) or "no copy in this evidence"
    name = f"{row['topic']}-{row['partition']}"
    return [
        name,
        offsets_of(row),
        records,
        row["class"],
        when or "unknown",
        cause_words(row["cause"]),
        epoch,
        places,
    ]


# --- HTML -------------------------------------------------------------------------------------------------


def answer_section(tables: Tables, answer: AuditAnswer) -> Html:
    """The first screen; the table of losses is folded after its first rows."""
    summary = tables.summary
    brokers = ", ".join(map(str, summary["brokers"])) or "unknown"
    moments = (
        f"; copies of {len(summary['moments'])} moments: {', '.join(summary['moments'])}"
        if summary["moments"]
        else ""
    )
    told = 1 if answer.incidents else 2  # the total; what happened stands before it where it was one thing
    lead, more = " ".join(answer.sentences[:told]), " ".join(answer.sentences[told:])
    return element(
        "section",
        element("h1", "Audit of ", element("code", summary["evidence"])),
        element(
            "div", element("p", lead), *([element("p", more, class_="more")] if more else ()), class_=f"verdict {answer.severity}".rstrip(), role="status"
        ),
        *_incidents_html(answer),
        element("h2", "Next", id="next"),
        element(
            "ol",
            *(element("li", element("pre", element("code", command)), element("span", gives, class_="quiet")) for command, gives in answer.commands),
            class_="next",
        ),
        *_losses_html(answer.losses),
        *_missing_html(answer),
        element(
            "p",
            f"Brokers {brokers}{moments}. {counted(summary['files'], 'file')}, {size(summary['bytes'])}, "
            f"{counted(summary['batches'], 'batch', 'batches')} and {counted(summary['records'], 'record')} examined "
            f"from {summary['started']} in {summary['seconds']:,.1f} s.",
            class_="quiet",
        ),
        id="answer",
    )  # fmt: skip


def _incidents_html(answer: AuditAnswer) -> Iterator[Html]:
    """A line for each of several incidents, with a link to the rest about it."""
    if answer.incidents:
        items = (element("li", link(anchor, sentence)) for sentence, anchor in answer.incidents)
        yield element("ol", *items, class_="incidents")
    if answer.more_incidents:
        yield element("p", link("findings", answer.more_incidents), class_="quiet")


def coverage_sentences(answer: AuditAnswer) -> list[str]:
    """What was judged, in sentences that the answer does not contain yet."""
    if not answer.coverages:
        return ["These tables say nothing about what was judged."]
    rest = (
        [f"Not asked, or nothing in the evidence on it: {', '.join(answer.unasked)}."]
        if answer.unasked
        else []
    )
    return [*(sentence for sentence in answer.coverages if sentence not in answer.sentences), *rest]


def _losses_html(losses: Sequence[StoredRow]) -> list[Html]:
    if not losses:
        return []

    def rows(shown: Sequence[StoredRow]) -> Html:
        linked: list[list[object]] = []
        for row in shown:
            name, offsets, *cells = loss_cells(row)
            linked.append([link(slug(str(name)), name), element("span", offsets, class_="offsets"), *cells])
        return table(LOST_COLUMNS, linked, frozenset({2, 6}), stacked=True)

    parts = [element("h2", "Lost", id="lost"), rows(losses[:MOST_LOSSES])]
    if len(losses) > MOST_LOSSES:
        folded = losses[MOST_LOSSES:MOST_FOLDED]
        parts.append(
            element(
                "details", element("summary", counted(len(folded), "more loss", "more losses")), rows(folded)
            )
        )
        parts.append(more_rows(len(losses) - MOST_FOLDED, "SELECT * FROM losses"))
    return parts


def _missing_html(answer: AuditAnswer) -> list[Html]:
    """What was judged, what was not, and the commands that get the missing evidence."""
    parts: list[Html] = [
        element("h2", "What was judged, and what was not", id="not-judged"),
        element("ul", *(element("li", sentence) for sentence in coverage_sentences(answer))),
    ]
    if not answer.missing:
        return parts
    cells = [lack.cells() for lack in answer.missing[:MOST_MISSING]]
    rows: list[list[object]] = [[*row[:4], element("code", row[4]) if row[4] else ""] for row in cells]
    parts.append(table(MISSING_COLUMNS, rows, stacked=True))
    statement = "SELECT * FROM judgements WHERE verdict IN ('could_not_judge', 'unreadable')"
    return [*parts, more_rows(len(answer.missing) - MOST_MISSING, statement)]


# --- Markdown ---------------------------------------------------------------------------------------------


def markdown(tables: Tables) -> str:
    """The first screen as Markdown."""
    causes = incidents(tables)
    answer = answer_of(tables, causes)
    lines = [f"**{_plain(' '.join(answer.sentences))}**", ""]
    happened = [*(sentence for sentence, _ in answer.incidents), *filter(None, [answer.more_incidents])]
    lines += [*(f"- {_plain(sentence)}" for sentence in happened), ""] if happened else []
    lines += ["Next:", ""]
    for command, gives in answer.commands:
        lines += [f"- {gives}:", "", *(f"      {line}" for line in command.splitlines()), ""]
    if answer.losses:
        lines += _markdown_table(LOST_COLUMNS, [loss_cells(row) for row in answer.losses[:MOST_FOLDED]])
        more = len(answer.losses) - MOST_FOLDED
        lines += [f"and {more:,} more", ""] if more > 0 else []
    lines += [*(f"- {_plain(sentence)}" for sentence in coverage_sentences(answer)), ""]
    if answer.missing:
        lines += _markdown_table(
            MISSING_COLUMNS, [list(lack.cells()) for lack in answer.missing[:MOST_MISSING]]
        )
        more = len(answer.missing) - MOST_MISSING
        lines += [f"and {more:,} more", ""] if more > 0 else []
    summary = tables.summary
    lines.append(
        f"Evidence {_plain(summary['evidence'])}, examined {summary['started']} by kctl {_plain(summary['kctl'])}."
    )
    return "\n".join(lines) + "\n"


def _markdown_table(header: list[str], rows: Sequence[Sequence[object]]) -> list[str]:
    body = [f"| {' | '.join(_plain(cell) for cell in row)} |" for row in rows]
    return [f"| {' | '.join(header)} |", "|---" * len(header) + "|", *body, ""]


def _plain(value: object) -> str:
    """A value with Markdown's and HTML's markup escaped."""
    text = UNPRINTABLE.sub("�", str(value)).replace("\n", " ").replace("&", "&amp;").replace("<", "&lt;")
    return "".join(f"\\{letter}" if letter in MARKUP else letter for letter in text)
