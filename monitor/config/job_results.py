"""Settings of the messages to owners about how their jobs ended.

daemon:
  alerts:
    job_results: {queues: [nlp], receivers: [wecom]}
"""

from __future__ import annotations

from typing import Annotated

from monitor.config.types import Names, NonEmpty, Section, require
from monitor.job_results.settings import LABEL, JobResultSettings

LabelName = Annotated[
    NonEmpty, require(lambda name: len(name) <= 317 and not any(c.isspace() for c in name), "{} is not a label's name")
]


class JobResultsConfig(Section):
    """Messages about the ends of jobs: those of `users` and `queues` (patterns), and those with the label.

    Without `receivers`, to all of them.
    """

    users: Names = ()
    queues: Names = ()
    label: LabelName = LABEL
    receivers: Names | None = None

    def settings(self, receivers: tuple[str, ...]) -> JobResultSettings:
        """Settings; `receivers` are the names of all."""
        chosen = receivers if self.receivers is None else self.receivers
        return JobResultSettings(receivers=chosen, users=self.users, queues=self.queues, label=self.label)
