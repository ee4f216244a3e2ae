"""What can be wrong with a segment, its batches and their records."""

from kctl.findings import FindingType, Severity

BATCH_CRC_MISMATCH = FindingType(
    "batch-crc-mismatch",
    Severity.ERROR,
    "The batch's bytes are not those that its CRC was computed over (stored {stored:08x}, computed {computed:08x}).",
    "Some byte of the batch changed after the broker or the producer computed the checksum.",
    "A failing disk, a torn write, memory or network errors before KIP-98 checks, or a hand edit.",
    "Take the batch from another replica; `kctl replica compare` says which copy is sound.",
)
