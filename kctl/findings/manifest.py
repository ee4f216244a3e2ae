"""What can be wrong with a copy that `kctl collect` made, held against its manifest."""

from kctl.findings import error, info, warning

CHANGED = error("""manifest-file-changed
    The file is not as it was copied: {how}.
    What is read from it is not what the broker had.
    It was edited, damaged by the disk, or replaced after the copy was made.
    Take the file from another copy of the folder, or collect again.""")
MISSING = error("""manifest-file-missing
    The manifest has the file, and it is not there.
    Verdicts on this folder go without it.
    It was deleted or moved, or a copy of the folder was incomplete.
    Take the file from another copy of the folder, or collect again.""")
ADDED = error("""manifest-file-added
    The file is not in the manifest.
    It is examined with the others although nobody knows where it is from.
    It was put into the folder after the copy was made, or the copy was interrupted while it was written.
    Move it out of the folder, or go on with the copy by `kctl collect --resume`.""")
SEAL_WRONG = error("""manifest-seal-wrong
    The seal of the manifest does not hold: {reason}.
    Nobody can tell whether the manifest is as it was written.
    The manifest was edited or cut short, or the copy was interrupted before its end.
    Go on with the copy by `kctl collect --resume`, or take the folder from another copy.""")
MANIFEST_BAD = warning("""manifest-malformed
    The manifest cannot be read: {reason}.
    Which parts of the copy are incomplete, and how far clocks were off, is unknown.
    The file was edited or damaged.
    Check the folder with `kctl collect verify`.""")
CUT_OFF = info("""evidence-cut-off
    The copy of {partition} was cut off, so that the partition was not examined: {why}.
    What is there of it is no whole log.
    The source went away, the copy was interrupted, or a file could not be read.
    Go on with the copy by `kctl collect --resume`.""")
LEFT_OUT = info("""evidence-left-out-of-copy
    {count:entry/entries} of the source {count:was|were} left out of the copy, such as {what} {name}: {why}.
    They were not examined.
    Links and devices are not followed; a running broker deletes files.
    The manifest names each; copy them by hand if they matter.""")
UNREACHED = info("""evidence-not-reached
    Nothing was copied from {source}: {why}.
    What it has was not examined.
    The source could not be reached as the copy was made.
    Go on with the copy by `kctl collect --resume`.""")
HASHED = info("""evidence-contents-hashed
    The copy has hashes in the place of keys, values and header values.
    What records hold cannot be seen in it. Sizes, offsets, nulls and which contents are equal are as they were.
    `kctl collect --headers` made it, so that others may have it.
    Ask the one who made the copy where contents matter; records are recovered from the originals alone.""")
CLOCK_MEASURED = info("""log-clock-measured
    The clock of broker {broker} was {seconds:.1f} s {side} those of the other brokers as its files were copied. kctl corrected its times.
    Rows of what this broker printed name the correction in `clock_offset_ms`; its lines still have the times of its clock.
    The host's clock is not synchronized; the manifest of the copy has what was measured.
    Check NTP on the broker's host, and whether its clock was set between the lines and the copy.""")
