"""Whether topics are still those that a change was made for: one that was deleted and created again is another."""

from collections.abc import Iterable, Mapping
from typing import Any

from kctl.changes.entry import Entry
from kctl.cluster.intent import Intent
from kctl.cluster.interface import Cluster
from kctl.cluster.state import ClusterState
from kctl.errors import Refused
from kctl.model import Json

# In the details of an entry: what tells topics that were there, and those that it made, from later ones of the same name.
TOPICS, MADE = "topics", "made"


def note_topics(entry: Entry, cluster: Cluster) -> None:
    """Record which topics the change is about. Raises KctlError if they cannot be read."""
    if names := _names(stage.intent for stage in entry.stages):
        state = cluster.read_state(names, partition_states=False, recent=True)
        entry.details[TOPICS] = {name: _identity(state, name) for name in names if name in state.topics}


def note_made(entry: Entry, intent: Intent, state: ClusterState) -> None:
    """Record what tells the topics that were just created from later ones of the same names."""
    noted: Any = entry.details.setdefault(MADE, {})
    for part in intent.parts:
        if part.is_as_made(state):
            noted[part.topic_made] = _identity(state, part.topic_made)


def has_id(entry: Entry, name: str) -> bool:
    """Whether the id of a topic is recorded."""
    return bool(made_as(entry, name).get("topic_id"))


def made_as(entry: Entry, name: str) -> Mapping[str, Json]:
    """What tells a topic that the change created from later ones of its name, as far as is known."""
    noted: Any = entry.details.get(MADE) or {}
    return noted.get(name) or entry.details  # a journal of an earlier kctl has the ids of one topic


def refuse_other_topics(entry: Entry, intents: Iterable[Intent], cluster: Cluster) -> None:
    """Raise Refused if a topic of the intents is another than the one that the change was made for."""
    noted: Any = entry.details.get(TOPICS)
    names = [name for name in _names(intents) if isinstance(noted, dict) and name in noted]
    if not names:
        return
    state = cluster.read_state(names, partition_states=False, recent=True)
    for name in names:
        if name in state.topics and _differs(noted[name], _identity(state, name)):
            raise Refused(
                f"topic {name} was deleted and created again since change {entry.id} was made; nothing was written",
                f"`kctl journal show {entry.id}` shows the change; make it anew if it is meant for the present topic",
            )


def _names(intents: Iterable[Intent]) -> list[str]:
    return sorted({name for intent in intents for name in intent.topics_concerned() or ()})


def _identity(state: ClusterState, name: str) -> dict[str, Json]:
    topic = state.topics[name]
    return {"topic_id": topic.topic_id, "created_at": topic.created_at}


def _differs(noted: Mapping[str, Json], present: Mapping[str, Json]) -> bool:
    known = ((noted.get(key), value) for key, value in present.items())
    return any(then is not None and now is not None and then != now for then, now in known)
