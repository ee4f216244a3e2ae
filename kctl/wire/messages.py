"""Messages of Kafka's protocol that kafka-python does not have, as schemas that it reads; created on first use.

Source: clients/src/main/resources/common/message/*.json @ 4.3.0, in `messages.json`
"""

import json
from functools import cache
from pathlib import Path
from types import new_class
from typing import Any

from kafka.protocol import api_data
from kafka.protocol.api_message import ApiMessage

from kctl.wire.shortcuts.schemas import fill_in_structures

# Names of requests without `Request`; each comes with its response.
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
    "CreateDelegationToken",  # KIP-48
    "DescribeDelegationToken",
    "ExpireDelegationToken",
    "RenewDelegationToken",
}


@cache
def _schemas() -> dict[str, Any]:
    messages = json.loads(Path(__file__).with_suffix(".json").read_text(encoding="utf-8"))
    return {message["name"]: fill_in_structures(message) for message in messages}


_load_library_json = api_data.load_json


def _load_json(message: str, package: object = None) -> dict[str, Any]:
    schema: dict[str, Any] = (
        _schemas()[message] if package == __name__ else _load_library_json(message, package=package)
    )
    return schema


api_data.load_json = _load_json  # the library reads a file for each message


def __getattr__(name: str) -> Any:
    message = name.removesuffix("Request").removesuffix("Response")
    if message not in MESSAGES or name == message:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    for made in (f"{message}Request", f"{message}Response"):
        globals()[made] = new_class(
            made, (ApiMessage,), {"load_json": __name__}, lambda body: body.update(__module__=__name__)
        )
    return globals()[name]
