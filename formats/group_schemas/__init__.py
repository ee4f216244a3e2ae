"""The messages of `__consumer_offsets`, one file a group protocol: `(key, value)` of each type of record.

Source: group-coordinator/src/main/resources/common/message/*.json @ 3.9.0-rc3 and 4.3.0
"""
