"""The picture of a partition: complete, readable without colour, and not writable by evidence."""

from __future__ import annotations

import re
from typing import Any
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kctl.report.lineage import bands_of, legend, lineage_picture, patterns
from kctl.report.remote import legend as tier_legend
from tests.conftest import recording, rows

SVG = "{http://www.w3.org/2000/svg}"


def lineage(broker_id: int | None = 1, **values: Any) -> dict[str, Any]:
    return {
        "topic": "ledger",
        "partition": 0,
        "broker_id": broker_id,
        "moment": None,
        "epochs": [[0, 0], [3, 40]],
        "log_start_offset": 0,
        "log_end_offset": 54,
        "high_watermark": 54,
        **values,
    }


def loss(**values: Any) -> dict[str, Any]:
    return {
        "from_offset": 40,
        "to_offset": 70,
        "class": "committed",
        "cause": "unclean_election",
        "recoverable_from": [{"moment": None, "broker_id": 1}],
        **values,
    }


def parsed(markup: str) -> ElementTree.Element:
    return ElementTree.fromstring(markup)


def titles(root: ElementTree.Element) -> list[str]:
    return [one.text or "" for one in root.iter("title")]


@pytest.mark.slow
def test_an_incident_shows_bands_branch_points_and_what_was_lost() -> None:
    folder = recording("incidents/unclean-2.8")
    wanted = ("--topic", "ledger", "--partition", 0)
    compared = rows("replica", "compare", folder, *wanted)
    lost = rows("replica", "loss", folder, *wanted)
    root = parsed(lineage_picture(compared.of("lineage"), compared.of("divergence"), lost.of("loss")))
    said = titles(root)
    assert "offsets [40, 70), epoch 1" in said
    assert "offsets [40, 52), epoch 3" in said
    assert "replicas part at offset 40" in said
    # Once on the lane of the copy that still holds it, once on its own.
    assert said.count("lost: offsets [40, 70), committed, unclean election") == 2
    texts = [one.text for one in root.iter("text")]
    assert {"broker 1 · during", "broker 2 · after", "0", "1", "3", "parts at 40"} <= set(texts)


def test_what_was_lost_is_never_written_over_its_outline() -> None:
    wide = lineage(log_end_offset=330, high_watermark=330)
    for start, end in ((100, 260), (0, 330), (300, 330), (0, 10)):
        root = parsed(
            lineage_picture([wide], [], [loss(from_offset=start, to_offset=end, recoverable_from=[])])
        )
        box = next(r for r in root.iter("rect") if "lost" in (r.findtext("title") or ""))
        text = next(one for one in root.iter("text") if "committed" in (one.text or ""))
        left, right = float(box.get("x", 0)), float(box.get("x", 0)) + float(box.get("width", 0))
        is_beside = (
            float(text.get("x", 0)) <= left
            if text.get("text-anchor") == "end"
            else float(text.get("x", 0)) >= right
        )
        top_of_text = float(text.get("y", 0)) - 12
        assert is_beside or top_of_text >= float(box.get("y", 0)) + float(box.get("height", 0))


def test_colour_is_never_needed() -> None:
    markup = lineage_picture([lineage()], [], [loss()])
    root = parsed(markup)
    bands = [r for r in root.iter("rect") if "epoch" in (r.findtext("title") or "")]
    assert all(band.get("stroke") for band in bands)
    assert [one.text for one in root.iter("text")][1:3] == ["0", "3"]
    outlined = [r for r in root.iter("rect") if "lost" in (r.findtext("title") or "")]
    assert all(one.get("stroke-dasharray") and one.get("fill") == "none" for one in outlined)
    assert "#" not in re.sub(r"url\(#[\w-]+\)", "", markup), "colours are variables of the page"


def test_damage_is_hatched() -> None:
    damaged = {
        "code": "replica-damaged-copy",
        "severity": "error",
        "position": 300,
        "broker_id": 1,
        "moment": None,
        "base_offset": 10,
        "last_offset": 19,
    }
    root = parsed(lineage_picture([lineage()], (), (), [damaged]))
    (hatched,) = [r for r in root.iter("rect") if r.get("fill") == "url(#damage)"]
    assert hatched.findtext("title") == "damaged: offsets [10, 20)"
    assert "damaged: offsets [10, 20)." in (root.findtext("desc") or "")


def test_every_fill_of_a_picture_is_a_pattern_of_the_page() -> None:
    fills = {f"url(#{one.get('id')})" for one in parsed(patterns()).iter("pattern")}
    markup = lineage_picture([lineage(epochs=[[0, 0], [1, 10], [3, 40]])], (), [loss()])
    assert set(re.findall(r"url\(#[\w-]+\)", markup)) == {"url(#band-a)", "url(#band-b)", "url(#band-c)"}
    assert set(re.findall(r"url\(#[\w-]+\)", markup + legend() + tier_legend())) <= fills


def test_the_axis_says_what_it_is_and_its_numbers_do_not_overlap() -> None:
    for end in (1, 2, 54, 2**40, 2**63 - 1):
        root = parsed(lineage_picture([lineage(epochs=[[0, 0]], log_end_offset=end, high_watermark=None)]))
        texts = [one for one in root.iter("text") if one.get("class") == "quiet"]
        assert [one.text for one in texts][-1] == "offset"
        numbers = texts[:-1]
        assert (numbers[0].text, numbers[-1].text) == ("0", f"{end:,}")
        places = [float(one.get("x", 0)) for one in numbers]
        assert places == sorted(set(places))


def test_a_loss_without_an_end_goes_to_the_edge() -> None:
    root = parsed(lineage_picture([lineage()], (), [loss(to_offset=None, cause="zombie_leader")]))
    assert "lost: offsets [40, ...), committed, zombie leader" in titles(root)


def test_lists_may_be_json_text_as_tables_hold_them() -> None:
    as_text = lineage(epochs="[[0, 0], [3, 40]]")
    assert bands_of(as_text) == [(0, 40, 0), (40, 54, 3)]
    told = lineage_picture([as_text], (), [loss(recoverable_from='[{"moment": null, "broker_id": 1}]')])
    assert told.count("<title>lost: offsets") == 2


def test_offsets_without_an_epoch_are_a_band_of_their_own() -> None:
    assert bands_of(lineage(epochs=[[2, 30]])) == [(0, 30, None), (30, 54, 2)]
    assert bands_of(lineage(epochs=[])) == [(0, 54, None)]


text = st.text(max_size=40)


@given(text, text, st.lists(st.tuples(st.integers(0, 2**31 - 1), st.integers(0, 2**63 - 1)), max_size=400))
def test_nothing_in_evidence_writes_the_page(topic: str, moment: str, epochs: list[tuple[int, int]]) -> None:
    row = lineage(
        topic=topic,
        moment=moment,
        epochs=[list(e) for e in sorted(epochs)],
        log_end_offset=2**63 - 1,
        high_watermark=None,
    )
    root = parsed(lineage_picture([row, lineage(None)], [{"from_offset": 5}], [loss()]))
    assert {one.tag for one in root.iter()} <= {
        "svg", "title", "desc", "rect", "line", "text",
    }  # fmt: skip
    assert not any(key.startswith("on") for one in root.iter() for key in one.attrib)
