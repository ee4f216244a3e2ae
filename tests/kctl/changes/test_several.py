"""Intents that are carried out together: each method of an intent is answered by the parts, or needs no answer."""

import pytest

from kctl.changes.intents import Several
from kctl.changes.kinds.configs import AlterConfig
from kctl.changes.kinds.topics import AddPartitions, CreateTopic, DeleteTopic
from kctl.cluster.intent import Intent

OF_PARTS = {  # `apply`, `same_topics` and `undo` ask each of `parts`
    "stands", "leaves_no_trace", "topic_made", "is_as_made", "refuse_changed", "refuse_dead", "lost_with",
}  # fmt: skip
OF_A_KIND = {"to_json", "from_json", "kind", "does", "final", "codecs"}


@pytest.mark.parametrize("kind", [CreateTopic, AddPartitions, AlterConfig, DeleteTopic])
def test_parts_lose_no_answer(kind: type[Intent]) -> None:
    """For each kind that `together` of a plan of files puts in one stage."""
    public = {name for name in vars(Intent) if not name.startswith("_")}
    own = {name for name in public if getattr(kind, name) is not getattr(Intent, name)}
    assert own - set(kind.__struct_fields__) - set(vars(Several)) <= OF_PARTS | OF_A_KIND


def test_brokers_that_restart_forget_levels_of_loggers() -> None:
    levels, values = (
        AlterConfig(entity_type=kind, entity_name="1", before={}, after={})
        for kind in ("broker-loggers", "brokers")
    )
    assert Several(parts=(levels, levels)).is_forgotten
    assert not Several(parts=(values, values)).is_forgotten
