"""Batches and records as arrays: one pass of numpy over thousands of them instead of an object for each.

Five functions do all the work over bytes, arrays in and arrays out: `headers.walk`, `crc.crc32c_of_ranges`,
`record_starts.chain`, `records.fields_of` and `record_headers.check_header_lists`. A compiled kernel would replace
these and nothing else; the tests that hold them against the decoder of single batches hold it too.
"""
