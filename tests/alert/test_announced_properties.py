"""Any sequence of labels and causes of one subject is one firing and one resolved notification in each episode."""

from __future__ import annotations

import itertools

from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from monitor.alert.model import Notification, NotificationReason
from tests.alert.scenario import Scenario, policy
from tests.alert.test_announced import BATCH, FIRST, OPS, OTHERS, announced

LABELS = st.fixed_dictionaries(
    {"node": st.sampled_from(("n1", "n2"))},
    optional={name: st.sampled_from(("a", "batch")) for name in ("user", "job", "queue")},
)
STEPS = st.lists(st.tuples(LABELS, st.sampled_from(("nearly-full", "default-size")), st.booleans()), min_size=1)


@settings(deadline=None, max_examples=200)
@given(episodes=st.lists(STEPS, min_size=1, max_size=3))
def test_any_sequence_of_labels_is_one_firing_and_one_resolved_notification_in_each_episode(
    episodes: list[list[tuple[dict[str, str], str, bool]]],
) -> None:
    scenario, sent = Scenario(policy(OPS, BATCH, OTHERS)), list[Notification]()
    for steps in episodes:
        sets, links = [], set()
        for labels, cause, restarted in steps:
            found = replace(FIRST, labels={"namespace": "ml", "pod": "train-0", **labels}, cause=cause)
            sent += scenario.evaluate(found, after=1.0)
            if restarted:
                scenario.restart()
            (alert,) = scenario.alerts.values()
            assert alert.finding.labels == found.labels
            sets.append(announced(scenario))
            links.add(alert.fingerprint)
        assert all(one == sets[0] for one in sets)
        assert len(links) == 1
        for _ in range(2):
            sent += scenario.evaluate(after=60.0)
    for receiver, of_receiver in itertools.groupby(sorted(sent, key=lambda each: each.receiver), lambda e: e.receiver):
        reasons = [each.reason for each in of_receiver]
        assert reasons == [NotificationReason.NEW, NotificationReason.RESOLVED] * (len(reasons) // 2), receiver
    assert [each.reason for each in sent if each.receiver == "ops"] == [
        NotificationReason.NEW, NotificationReason.RESOLVED
    ] * len(episodes)  # fmt: skip
