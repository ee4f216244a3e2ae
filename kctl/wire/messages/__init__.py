"""Messages of Kafka's protocol that kafka-python does not have, as schemas that it reads; made when they are asked for.

Source: clients/src/main/resources/common/message/*.json @ 4.3.0
"""

from types import new_class
from typing import Any

from kafka.protocol.api_message import ApiMessage

# Requests without their ending; each comes with its answer.
MESSAGES = {
    "ConsumerGroupDescribe",  # KIP-848
    "ShareGroupDescribe",  # KIP-932
    "DescribeShareGroupOffsets",
    "AlterShareGroupOffsets",
    "DeleteShareGroupOffsets",
    "StreamsGroupDescribe",  # KIP-1071
    "AddRaftVoter",  # KIP-853
    "RemoveRaftVoter",
    "UnregisterBroker",  # KIP-631
    "FetchSnapshot",  # KIP-630
}


def __getattr__(name: str) -> Any:
    message = name.removesuffix("Request").removesuffix("Response")
    if message not in MESSAGES or name == message:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    for made in (f"{message}Request", f"{message}Response"):
        globals()[made] = new_class(
            made, (ApiMessage,), {"load_json": __name__}, lambda body: body.update(__module__=__name__)
        )
    return globals()[name]
