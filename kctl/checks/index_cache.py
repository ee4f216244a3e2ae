"""A broker's copies of the indexes of remote segments: what can be said of them without the segment.

They are held against their tier elsewhere; here only their own order counts. A copy that is damaged is read
by the broker as it is (`S:RemoteIndexCache.java @ 3.9.0`).
"""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import numpy as np

from formats.index_files import ABORTED_SIZE, OFFSET_ENTRY_SIZE, TIME_ENTRY_SIZE
from formats.remote_index_cache import parse_cached_index
from kctl.checks.offset_index import OffsetIndexCheck, used_entries
from kctl.checks.report import CheckOptions, FileReport, Report
from kctl.checks.segment import read_small
from kctl.checks.time_index import TimeIndexCheck
from kctl.findings import Place
from kctl.findings import indexes as say

WIDTHS = {".index": OFFSET_ENTRY_SIZE, ".timeindex": TIME_ENTRY_SIZE, ".txnindex": ABORTED_SIZE}


def check_index_cache(folder: Path, place: Place, options: CheckOptions) -> Report:
    """The files of a `remote-log-index-cache`; unfinished and deleted ones are left out."""
    found = Report()
    try:
        names = sorted(os.listdir(folder))
    except OSError:
        return found
    for name in names:
        cached = parse_cached_index(name)
        path = folder / name
        if cached is None or cached.left_over or path.is_symlink() or not path.is_file():
            continue
        where = replace(
            place, file=f"{place.file}/{name}", remote_log_segment_id=cached.remote_log_segment_id
        )
        report = found.file(where, cached.suffix.removeprefix("."), path.stat().st_size, options)
        report.base_offset = cached.start_offset
        data = read_small(path, report)
        if data is not None:
            _check_order(report, data, cached.suffix, cached.start_offset)
    return found


def _check_order(report: FileReport, data: bytes, suffix: str, base_offset: int) -> None:
    width = WIDTHS[suffix]
    fragment = len(data) % width
    if fragment:
        place = report.at(len(data) - fragment, fragment)
        report.say(say.INDEX_FRAGMENT, place, count=fragment, width=width)
        report.damaged_bytes += fragment
    dirty = used_entries(data, width).dirty_entry
    if dirty is not None:
        report.say(say.INDEX_PADDING_DIRTY, report.at(dirty * width, width), entry=dirty)
        report.damaged_bytes += width
    if suffix == ".index":
        offsets = OffsetIndexCheck(data, base_offset)
        for entry in np.flatnonzero(offsets.unordered()).tolist():
            details = {
                "entry": entry,
                "offset": int(offsets.offset[entry]),
                "target": int(offsets.target[entry]),
            }
            report.say(say.INDEX_ENTRY_UNORDERED, report.at(entry * width, width), **details)
            report.damaged_bytes += width
    elif suffix == ".timeindex":
        times = TimeIndexCheck(data, base_offset)
        for entry in np.flatnonzero(times.unordered()).tolist():
            details = {
                "entry": entry,
                "timestamp": int(times.timestamp[entry]),
                "offset": int(times.offset[entry]),
            }
            report.say(say.TIME_INDEX_ENTRY_UNORDERED, report.at(entry * width, width), **details)
            report.damaged_bytes += width
