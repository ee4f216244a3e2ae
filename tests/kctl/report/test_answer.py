"""The first screen: what happened, what is lost, what to run, what was not judged; no reassurance without coverage."""

from __future__ import annotations

import re
import shlex
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from commands.cli.answer import with_answer
from commands.cli.evidence_options import EvidenceOptions
from commands.cli.render import Page, folding
from commands.replica.loss_text import loss_text
from kctl.audit.tables import Tables, TableWriter, write_summary
from kctl.findings import all_findings
from kctl.findings.remote import COPIED_AGAIN
from kctl.replica.loss.words import amount_of
from kctl.report.answer import AuditAnswer, answer_of, answer_section, markdown
from kctl.report.incidents import CONSEQUENCES, incidents
from kctl.report.page import render
from kctl.report.partitions import _verdict_words
from kctl.rows.audit import AUDIT
from tests.audit_rows import whole_row

NO_COPY: list[dict[str, Any]] = []
DURING = [{"moment": "during", "broker_id": 1}]


def loss(partition: int = 0, **values: Any) -> dict[str, Any]:
    return {
        "topic": "ledger", "partition": partition, "from_offset": 40, "to_offset": 60, "class": "committed",
        "cause": "unclean_election", "lost_in_epoch": 3, "dropped_by": 2, "isr_before": [1], "records": 20,
        "recoverable_from": DURING, "recoverable_from_tier": [], "evidence": [], "replaced": [], "missing": [],
        "first_timestamp": 1795267112914, "last_timestamp": 1795267112955, **values,
    }  # fmt: skip


def election(partition: int = 0, time: str = "2026-11-21T13:18:34.100Z", **values: Any) -> dict[str, Any]:
    return {
        "topic": "ledger", "partition": partition, "leader": 2, "leader_epoch": 3, "from_time": time, "how": "unclean",
        "isr": [2], "isr_changes": [], "evidence": [], **values,
    }  # fmt: skip


def finding(code: str, severity: str = "error", **values: Any) -> dict[str, Any]:
    return {
        "code": code,
        "severity": severity,
        "message": "It is so.",
        "topic": "ledger",
        "partition": 0,
        **values,
    }


def tables(folder: Path, *, evidence: str = "evidence", parts: tuple[Any, ...] = (), **rows: Any) -> Tables:
    for name, held in rows.items():
        with TableWriter(folder, name) as writer:
            for row in held:
                writer.row(whole_row(name, row))
        writer.put_in_place()
    write_summary(folder, dict.fromkeys(AUDIT.fields) | {
        "verdict": "-", "evidence": evidence, "brokers": [1, 2], "moments": [], "files": 1, "bytes": 1, "batches": 1,
        "records": 1, "partitions": 1, "errors": 0, "warnings": 0, "infos": 0, "judgements": [], "kctl": "1",
        "started": "2026-11-22T00:00:00.000Z", "seconds": 1.0, "parts": list(parts),
    })  # fmt: skip
    return Tables(folder)


def test_commands_repeat_what_was_said_about_folders(tmp_path: Path) -> None:
    made = tables(tmp_path, losses=[loss()], leaders=[election()])
    made.summary["options"] = [["--broker", "1=a b"], ["--moment", "then=c"]]
    assert [command for command, _ in answer_of(made, incidents(made)).commands] == [
        "kctl replica loss evidence --broker '1=a b' --moment then=c --export lost",
        "kctl replica explain evidence --broker '1=a b' --moment then=c --topic ledger --partition 0 --offset 40",
        "kctl state-log timeline evidence --broker '1=a b' --topic ledger --partition 0",
    ]


def answer(folder: Path, **rows: Any) -> AuditAnswer:
    made = tables(folder, **rows)
    return answer_of(made, incidents(made))


def test_the_sentence_says_when_who_how_much_and_where_it_still_is(tmp_path: Path) -> None:
    times = ("2026-11-21T13:18:34.100Z", "2026-11-21T13:18:41.900Z", "2026-11-21T13:18:36.000Z")
    killed = {
        "broker_id": 1,
        "time": "2026-11-21T13:18:30.000Z",
        "state": "killed",
        "how": "out_of_memory",
        "evidence": [],
    }
    told = answer(
        tmp_path,
        losses=[loss(number) for number in range(3)],
        leaders=[election(number, time) for number, time in enumerate(times)],
        broker_states=[killed, {**killed, "broker_id": 7, "time": "2026-11-21T13:18:33.000Z"}],
    )
    assert " ".join(told.sentences) == (
        "On 2026-11-21 between 13:18:34 and 13:18:41 UTC, after broker 1 was killed (out of memory) at 13:18:30, broker 2"
        " became leader of 3 partitions without being in sync."
        " 60 committed records are gone from the cluster; all 60 are still on broker 1 (copy 'during')."
    )
    assert told.severity == "error"
    assert [command for command, _ in told.commands] == [
        "kctl replica loss evidence --export lost",
        "kctl replica explain evidence --topic ledger --partition 0 --offset 40",
        "kctl state-log timeline evidence --topic ledger --partition 0",
    ]


def test_a_broker_that_the_controller_missed_was_killed_before(tmp_path: Path) -> None:
    life = {"broker_id": 1, "evidence": []}
    told = answer(
        tmp_path,
        losses=[loss()],
        leaders=[election()],
        broker_states=[
            {**life, "time": "2026-11-21T13:18:25.000Z", "state": "killed", "how": "no_shutdown",
             "until_time": "2026-11-21T13:18:47.000Z"},
            {**life, "time": "2026-11-21T13:18:30.000Z", "state": "down"},
        ],
    )  # fmt: skip
    assert (
        "after broker 1 was killed between 13:18:25 and 13:18:30, broker 2 became leader" in told.sentences[0]
    )


def judged(question: str, verdict: str, partition: int = 0) -> dict[str, Any]:
    lacks = [{"what": "znodes", "get": "kctl znode export"}] if verdict == "could_not_judge" else []
    return {
        "question": question,
        "verdict": verdict,
        "topic": "ledger",
        "partition": partition,
        "missing": lacks,
    }


def test_what_was_not_judged_stands_beside_what_is_lost(tmp_path: Path) -> None:
    told = answer(
        tmp_path,
        losses=[loss()],
        leaders=[election(), election(1)],
        judgements=[
            judged("loss", "lost"),
            judged("loss", "could_not_judge", 1),
            judged("integrity", "sound"),
        ],
    )
    assert told.sentences[-1] == "Not judged: loss of 1 partition."


def test_a_cluster_without_faults_gets_one_sentence_and_then_what_it_rests_on(tmp_path: Path) -> None:
    told = answer(tmp_path, judgements=[judged("loss", "sound"), judged("integrity", "sound")])
    assert told.sentences == (
        "Nothing wrong was found in what was judged: loss of 1 partition, integrity of 1 copy.",
    )
    assert told.severity == "good"
    assert told.coverages == (
        "Loss: 1 partition lost no committed record.",
        "Integrity: 1 copy sound.",
    )


def test_the_losses_that_are_folded_and_those_left_out_are_counted_apart(tmp_path: Path) -> None:
    page = render(tables(tmp_path, losses=[loss(number) for number in range(510)]))
    assert "490 more losses</summary>" in page
    assert "and 10 more; in this folder: " in page


@pytest.mark.parametrize(
    ("row", "said"),
    [
        ({}, "20 committed records are gone from the cluster; all 20 are still on broker 1 (copy 'during')."),
        ({"records": 7}, "20 committed offsets are gone from the cluster; at least 7 of them are still on broker 1 (copy 'during')."),
        ({"records": None, "recoverable_from": NO_COPY}, "20 committed offsets are gone from the cluster; no copy in this evidence holds them."),
        ({"records": None}, "20 committed offsets are gone from the cluster; some may still be on broker 1 (copy 'during')."),
        ({"to_offset": None, "records": None, "recoverable_from": NO_COPY}, "At least 1 committed offset is gone from the cluster; no copy in this evidence holds them."),
        ({"class": "uncommitted"}, "20 records that were never committed were dropped, acknowledged with acks=1 at most; all 20 are still on broker 1 (copy 'during')."),
    ],
)  # fmt: skip
def test_what_is_said_of_a_loss_claims_no_more_than_its_row(
    tmp_path: Path, row: dict[str, Any], said: str
) -> None:
    assert answer(tmp_path, losses=[loss(**row)]).sentences[-1] == said


def test_offsets_that_two_losses_name_count_once() -> None:
    amount = amount_of([loss(), loss(from_offset=50, to_offset=70)])
    assert (amount.offsets, amount.partitions) == (30, 1)
    assert not amount.is_complete


def test_elections_far_apart_are_two_incidents(tmp_path: Path) -> None:
    made = tables(
        tmp_path,
        losses=[loss(0), loss(1)],
        leaders=[
            election(0),
            election(1, "2026-11-21T15:00:00.000Z"),
            election(2, "2026-11-21T15:00:01.000Z"),
        ],
    )
    found = incidents(made)
    assert [one.partitions for one in found] == [(("ledger", 0),), (("ledger", 1), ("ledger", 2))]
    assert [len(one.losses) for one in found] == [1, 1]


def ended(
    broker_id: int, state: str, time: str, until: str | None = None, how: str | None = None
) -> dict[str, Any]:
    day = "2026-11-21T13:18:"
    until_time = None if until is None else f"{day}{until}.000Z"
    return {
        "broker_id": broker_id,
        "state": state,
        "time": f"{day}{time}.000Z",
        "until_time": until_time,
        "how": how,
    }


@pytest.mark.parametrize(
    ("ends", "after"),
    [
        ([ended(2, "killed", "10", "20"), ended(1, "killed", "30", "33")], "after broker 2 was killed between 13:18:10 and 13:18:20, "),
        (
            [ended(2, "killed", "10", "20"), ended(2, "halted", "25", None, "fatal_error_in_startup")],
            "after broker 2 halted (fatal error in startup) at 13:18:25, ",
        ),
        ([ended(1, "killed", "30", "33")], ""),
    ],
)  # fmt: skip
def test_a_lost_tail_is_told_with_the_end_of_its_own_broker(
    ends: list[dict[str, Any]], after: str, tmp_path: Path
) -> None:
    cause = {"cause": "power_failure_tail"}
    made = tables(tmp_path, losses=[loss(**cause)], leaders=[election(how="failure")], broker_states=ends)
    (found,) = incidents(made)
    what = "broker 2 led ledger-0 without the end of its log, which a power failure had taken."
    assert found.sentence() == f"On 2026-11-21 at 13:18:34 UTC{', ' * bool(after)}{after or ' '}{what}"


def test_the_last_known_leader_is_no_outsider(tmp_path: Path) -> None:
    why = "nobody was in the ISR or eligible, and broker 2 was the last known leader"
    made = tables(tmp_path, losses=[loss(), loss(1)], leaders=[election(cause=why), election(1)])
    said = [found.sentence() for found in incidents(made)]
    assert said == [
        "On 2026-11-21 at 13:18:34 UTC broker 2 became leader of ledger-0 as the last known leader, for nobody was in the ISR"
        " or eligible.",
        "On 2026-11-21 at 13:18:34 UTC broker 2 became leader of ledger-1 without being in sync.",
    ]


def test_what_follows_from_an_incident_is_told_there_and_not_again(tmp_path: Path) -> None:
    made = tables(
        tmp_path, losses=[loss()], leaders=[election()],
        findings=[finding("unclean-leader-election"), finding("unclean-leader-election", partition=9), finding("batch-crc-mismatch")],
    )  # fmt: skip
    page = render(made)
    assert "unclean-leader-election 1" in page
    assert page.count('id="code-unclean-leader-election"') == 1, (
        "the election of partition 9 is not of the incident"
    )
    assert page.count('id="code-batch-crc-mismatch"') == 1
    assert {one.code for one in all_findings()} >= CONSEQUENCES


def test_nothing_is_green_without_judgements(tmp_path: Path) -> None:
    told = answer(tmp_path, segments=[{"topic": "ledger", "partition": 0}])
    assert told.severity == ""
    assert told.sentences == ("Nothing was judged: the tables of this audit have no verdict.",)
    for text in (
        markdown(Tables(tmp_path)),
        re.sub("<(style|script)>.*?</", "", render(Tables(tmp_path)), flags=re.DOTALL),
    ):
        assert not re.search(r"\bsound\b|nothing (is )?(lost|wrong)", text, re.IGNORECASE)


def test_a_part_that_could_not_be_done_is_said_first(tmp_path: Path) -> None:
    told = answer(tmp_path, parts=({"name": "tier", "state": "could not: read", "seconds": 1.0},))
    assert told.sentences == ("Not everything could be examined: tier.",)
    assert told.severity == ""


def test_a_page_in_evidence_paths_with_spaces_and_markup(tmp_path: Path) -> None:
    evil = shlex.quote('my <b>"evidence"</b>; rm -rf *')
    made = tables(
        tmp_path,
        evidence=evil,
        losses=[loss(topic="<i>|[x](y)", evidence=[{"file": "<u>", "line": 1, "text": "</script>"}])],
    )
    page, text = render(made), markdown(made)
    for tag in ("<b>", "<i>", "<u>"):
        assert tag not in page
    assert page.count("</script>") == 1
    assert "&lt;i>\\|\\[x](y)-0" in text
    command = re.search(r"^ +(kctl replica loss .*)$", text, re.MULTILINE)
    assert command
    assert shlex.split(command[1])[3] == 'my <b>"evidence"</b>; rm -rf *'


def test_ids_survive_and_lead_somewhere(tmp_path: Path) -> None:
    rows = {
        "losses": [loss(), loss(1)],
        "leaders": [election(), election(1)],
        "findings": [finding("batch-crc-mismatch", file="a.log", position=7)],
    }
    lineage = {
        "topic": "ledger",
        "partition": 0,
        "broker_id": 1,
        "epochs": [[0, 0]],
        "log_start_offset": 0,
        "log_end_offset": 9,
    }
    first = (
        render(tables(tmp_path / "a", lineages=[lineage], **rows)) if (tmp_path / "a").mkdir() is None else ""
    )
    again = (
        render(
            tables(
                tmp_path / "b",
                lineages=[lineage],
                **{**rows, "findings": [finding("record-malformed"), *rows["findings"]]},
            )
        )
        if (tmp_path / "b").mkdir() is None
        else ""
    )
    ids = set(re.findall(r' id="([^"]+)"', first))
    assert {"ledger-0", "ledger-1", "next", "lost", "not-judged", "incident-unclean_election-ledger-0"} <= ids
    assert {one for one in ids if one.startswith("finding-")} < set(re.findall(r' id="([^"]+)"', again))
    assert set(re.findall(r'href="#([^"=]+)"', first)) <= ids


def laid_out(rows: list[dict[str, Any]], width: int = 80, *, everything: bool = False) -> list[str]:
    following: list[str] = []
    coverage = {"kind": "coverage", "question": "loss", "judged": 1, "sound": 0, "lost": 1, "damaged": 0,
                "unreadable": 0, "could_not_judge": 0, "missing": []}  # fmt: skip
    propose = EvidenceOptions(("a folder", "b" * 90)).proposing(following)
    text = partial(loss_text, propose=propose, everything=everything)
    page = Page(width, color=False)
    return list(folding(with_answer(text, following))([*rows, coverage], page))


def test_the_terminal_shows_ten_losses_and_names_the_option_for_the_rest() -> None:
    rows = [
        {"kind": "loss", "written_by": 1, "written_in_epoch": 1, "exported": None, **loss(n)}
        for n in range(12)
    ]
    lines = laid_out(rows)
    assert sum("offsets [40, 60)" in line for line in lines) == 10
    assert "2 more losses, which --all shows" in lines
    assert sum("offsets [40, 60)" in line for line in laid_out(rows, everything=True)) == 12
    assert "--all" not in "".join(laid_out(rows[:10]))


def test_the_last_lines_are_the_answer_and_a_command_in_one_line() -> None:
    row = {"kind": "loss", "written_by": 1, "written_in_epoch": 1, "exported": None, **loss()}
    *_, verdict, command = laid_out([row])
    assert verdict == "loss: 1 partition lost committed records"
    assert command == f"next     kctl replica loss 'a folder' {'b' * 90} --export lost"


@pytest.mark.parametrize(
    ("others", "sentence"),
    [(0, "No copy here holds these records."), (1, "Not all of these records are in a copy here.")],
)
def test_where_no_copy_has_the_records_it_says_what_not_to_start_and_where_to_look(
    tmp_path: Path, others: int, sentence: str
) -> None:
    row = {
        "kind": "loss",
        "written_by": 1,
        "written_in_epoch": 1,
        "exported": None,
        **loss(0, recoverable_from=NO_COPY),
    }
    lines = laid_out([row, *[{**row, **loss(1)}] * others])
    said = " ".join(line.strip() for line in lines)
    assert (
        f"{sentence} Before you start a broker, see what its start would cut; look for the records on disks"
        in said
    )
    assert lines[-1].startswith("next     kctl log-dir start 'a folder' ")
    assert not any("start a broker" in line for line in laid_out([{**row, "class": "uncommitted"}]))
    first, _ = answer(tmp_path, losses=[row]).commands[0]
    assert first.startswith("kctl log-dir start ")
    assert lines.index(next(line for line in lines if "gone from the cluster" in line)) < lines.index(
        next(line for line in lines if sentence[:20] in line)
    ), "the total comes first"


@pytest.mark.parametrize(
    ("others", "severity", "says"),
    [
        ([], "warning", "Nothing is lost. 3 copies to the tier failed, of which 2 were repeated; 2.0 KiB of leftovers can be removed."),
        (["loss"], "warning", "3 copies to the tier failed, of which 2 were repeated; 2.0 KiB of leftovers can be removed."),
        (["remote-object-missing"], "error", "Tier: 1 partition with faults in the tier. 3 copies to the tier failed, of which 2 "),
    ],
)  # fmt: skip
def test_copies_to_the_tier_that_failed_are_no_loss(
    tmp_path: Path, others: list[str], severity: str, says: str
) -> None:
    """In amber; nothing is reassured where the loss was not judged."""
    failed = finding("remote-copy-failed", "warning", size_in_bytes=1024)
    again = {
        **failed,
        "message": f"The copy was started then and never finished{COPIED_AGAIN}; 1,024 bytes are left.",
    }
    judgements = [
        judged("loss", "could_not_judge" if "loss" in others else "sound"),
        judged("tier", "damaged"),
    ]
    findings = [again, failed, again, *(finding(code) for code in others if code != "loss")]
    told = answer(tmp_path, findings=findings, judgements=judgements)
    assert told.severity == severity and " ".join(told.sentences).startswith(says)
    if not others:
        assert told.commands[0][0] == "kctl remote audit evidence --plan-cleanup orphans.jsonl"


def test_findings_that_differ_in_time_alone_are_one_row(tmp_path: Path) -> None:
    findings = [
        finding(
            "remote-copy-failed",
            "warning",
            message=f"The copy was started 2026-11-21 13:24:{n:02} UTC.",
            base_offset=0,
        )
        for n in range(30)
    ]
    made = tables(tmp_path, findings=[*findings, finding("remote-copy-failed", "warning", base_offset=7)])
    page = render(made)
    assert page.count("The copy was started 2026-11-21 13:24") == 1 and "from 7" in page
    assert "and 29 more that differ in time alone" in page and "audit sql . " not in page


def test_a_wide_terminal_shows_the_line_and_its_place_beside_each_other() -> None:
    proof = {
        "file": "broker-3/logs/state-change.log",
        "line": 176,
        "text": "Changed partition ledger-0 to " + "x" * 90,
    }
    row = {"kind": "loss", "written_by": 1, "written_in_epoch": 1, "exported": None, **loss(evidence=[proof])}
    (wide,) = [line for line in laid_out([row], 200) if "state-change.log:176" in line]
    assert wide.endswith(f'"{proof["text"]}"')
    narrow = laid_out([row], 80)
    assert all(len(line) <= 80 for line in narrow[:-1])


def test_several_incidents_are_a_list_below_the_total(tmp_path: Path) -> None:
    """By what they cost, at most five of them; the same in every form."""
    sizes = [3, 40, 7, 1, 20, 9, 2]
    made = tables(
        tmp_path,
        losses=[loss(n, from_offset=0, to_offset=size, records=size) for n, size in enumerate(sizes)],
        leaders=[election(n, f"2026-11-{10 + n}T13:00:00.000Z") for n in range(len(sizes))],
    )
    told = answer_of(made, incidents(made))
    assert told.sentences[0].startswith("82 committed") and "2026-11" not in " ".join(told.sentences)
    assert [line for line, _ in told.incidents] == [
        f"{sizes[n]} records: unclean election (broker 2 led), ledger-{n}, 2026-11-{10 + n} 13:00:00 UTC"
        for n in (1, 4, 5, 2, 0)
    ]
    assert told.more_incidents == "and 2 more incidents"
    html = render(made)
    first, anchor = told.incidents[0]
    assert f'<a href="#{anchor}">{first}</a>' in html and f'id="{anchor}"' in html
    assert html.index("82 committed") < html.index('class="incidents"') < html.index('id="next"')
    text = markdown(made)
    assert text.index("82 committed") < text.index("- 40 records") < text.index("Next:")


@pytest.mark.parametrize(
    ("verdict", "moment", "words"),
    [
        ("behind", "found", "In copy 'found' some replicas are behind but agree"),
        ("equal", None, "The copies agree (why)"),
        ("diverged", "found", "copy 'found': diverged (why)"),
    ],
)
def test_what_a_comparison_of_copies_says(verdict: str, moment: str | None, words: str) -> None:
    assert _verdict_words({"verdict": verdict, "reason": "why", "moment": moment}) == words


@pytest.mark.parametrize(
    ("code", "command"),
    [
        ("broker-ended", "kctl state-log timeline evidence"),
        ("log-dir-failed", "kctl state-log timeline evidence"),
        ("epoch-entry-missing", "kctl segment verify evidence"),
        ("replica-unclean-cost-unknown", "kctl replica loss evidence"),
        ("replica-incomplete-copy", "kctl replica compare evidence"),
        ("zombie-leader-write", "kctl state-log timeline evidence"),
        ("voter-directory-gone", "SELECT * FROM findings WHERE code = 'voter-directory-gone'"),
        ("compaction-stopped", "SELECT * FROM findings WHERE code = 'compaction-stopped'"),
    ],
)
def test_the_command_to_run_next_is_one_that_makes_the_finding(
    tmp_path: Path, code: str, command: str
) -> None:
    first, _ = answer(tmp_path, findings=[finding(code)]).commands[0]
    assert command in first


def test_the_total_of_several_incidents_stands_alone_and_what_else_is_lost_below_it(tmp_path: Path) -> None:
    first = election()
    second = election(1, "2026-11-21T15:18:34.100Z")
    losses = [loss(), loss(1, **{"class": "unknown"})]
    told = answer(tmp_path, losses=losses, leaders=[first, second])
    assert len(told.incidents) == 2
    assert told.sentences[0].startswith("20 committed records are gone") and "more" not in told.sentences[0]
    (tmp_path / "page").mkdir()
    page = str(answer_section(tables(tmp_path / "page", losses=losses, leaders=[first, second]), told))
    assert '</p><p class="more">20 more records are gone' in page
