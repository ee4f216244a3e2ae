"""Messages of Kafka's protocol that kafka-python does not have, as schemas that it reads.

Source: clients/src/main/resources/common/message/ConsumerGroupDescribe{Request,Response}.json @ 4.3.0 (KIP-848)
"""

from kafka.protocol.api_message import ApiMessage


class ConsumerGroupDescribeRequest(ApiMessage, load_json="kctl.wire.messages"):  # type: ignore[misc,call-arg]
    """Describes groups of the consumer protocol of KIP-848."""


class ConsumerGroupDescribeResponse(ApiMessage, load_json="kctl.wire.messages"):  # type: ignore[misc,call-arg]
    """The answer to it."""
