"""Records of Kafka's own topics without what is secret, or an application's, in them; their structure stays.

| Topic | Replaced |
|---|---|
| `__cluster_metadata` | salts and keys of SCRAM credentials, values of secret settings, records of unknown types |
| `__consumer_offsets` | the metadata of offset commits; records that are none of the topic's |
| `__transaction_state`, `__remote_log_metadata`, `__share_group_state` | nothing |
"""

from formats.errors import FormatError
from formats.log.hashed_contents import ContentHash, Contents
from formats.messages import cluster_metadata, consumer_offsets
from formats.messages.cluster_metadata import MetadataRecord, read_metadata_header, read_metadata_record
from formats.messages.schema import Values
from formats.secrets import is_secret_key, redact_text

METADATA, OFFSETS = "__cluster_metadata", "__consumer_offsets"
AS_THEY_ARE = frozenset({"__transaction_state", "__remote_log_metadata", "__share_group_state"})


def contents_of(topic: str | None, content_hash: ContentHash) -> Contents:
    """How the contents of a topic's records are replaced; None for a topic that is not known."""
    if topic == METADATA:
        return _Metadata(content_hash)
    if topic == OFFSETS:
        return _Offsets(content_hash)
    return _Kept(content_hash) if topic in AS_THEY_ARE else Contents(content_hash)


class _Kept(Contents):
    def of_record(self, key: bytes | None, value: bytes | None) -> tuple[bytes | None, bytes | None]:
        """Both as they are."""
        return key, value


class _Metadata(Contents):
    def of_record(self, key: bytes | None, value: bytes | None) -> tuple[bytes | None, bytes | None]:
        """The value without its secrets; records of this topic have no key."""
        kept_key = None if key is None else self.hash.replaced(key)
        if value is None:
            return kept_key, None
        try:
            record = read_metadata_record(value)
        except FormatError:
            return kept_key, _headed(value, self.hash)
        values = self._without_secrets(record)
        if values is record.values:
            return kept_key, value
        written = cluster_metadata.write_metadata_record(record._replace(values=values))
        return kept_key, written if len(written) == len(value) else _headed(value, self.hash)

    def _without_secrets(self, record: MetadataRecord) -> Values:
        """The very same values where there is no secret."""
        values = record.values
        if record.type == "USER_SCRAM_CREDENTIAL_RECORD":
            secret = {name: self.hash.replaced(values[name]) for name in ("salt", "stored_key", "server_key")}
            return {**values, **secret}
        setting = values.get("value")
        if record.type != "CONFIG_RECORD" or not setting:
            return values
        is_secret = is_secret_key(values["name"]) or redact_text(setting) != setting
        return {**values, "value": self.hash.replaced_text(setting)} if is_secret else values


class _Offsets(Contents):
    def of_record(self, key: bytes | None, value: bytes | None) -> tuple[bytes | None, bytes | None]:
        """The value of an offset commit without its metadata, which applications write; others as they are."""
        if key is None:
            return super().of_record(key, value)
        try:
            record = consumer_offsets.read_group_record(key, value)
        except consumer_offsets.UnknownRecordType:
            return key, None if value is None else self.hash.noise(value)
        except FormatError:
            return super().of_record(key, value)
        if value is None or record.value is None or not record.value.values.get("metadata"):
            return key, value
        message, version, values = record.value
        if message.name != "OffsetCommitValue":
            return key, value
        values = {**values, "metadata": self.hash.replaced_text(values["metadata"])}
        written = consumer_offsets.write_versioned(message, version, values)
        return key, written if len(written) == len(value) else self.hash.replaced(value)


def _headed(value: bytes, content_hash: ContentHash) -> bytes:
    """A metadata record of which only its type and version stay."""
    try:
        _, _, position = read_metadata_header(value)
    except FormatError:
        position = 0
    return value[:position] + content_hash.noise(value[position:])
