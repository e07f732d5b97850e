"""Settings of cleanup: its policies, and how agents are asked to act.

daemon:
  cleanup:
    allow: [/mnt/share]
    policies:
      - kind: images
        name: node-images
        mode: enforce
        high: 80%
        low: 70%
      - kind: datasets
        name: old-datasets
        root: /mnt/share
        pattern: "*/datasets/*"
        node: nas-01
        cron: "0 3 * * sun"
"""

from __future__ import annotations

from typing import Annotated, ClassVar

from pydantic import BeforeValidator, PlainValidator, ValidationError, field_validator
from pydantic_core import InitErrorDetails, PydanticCustomError

from monitor.base.peer_http import PeerTls
from monitor.base.signing import RequestSigner
from monitor.base.units import quoted
from monitor.cleanup.execute.agent_client import Access
from monitor.cleanup.policy import DAY, CleanupPolicy, When
from monitor.config.messages import explain
from monitor.config.policies import (
    DatasetPolicyConfig,
    GpuPolicyConfig,
    ImagePolicyConfig,
    PodPolicyConfig,
    PolicyConfig,
    RegistryPolicyConfig,
    Root,
)
from monitor.config.types import AbsolutePath, Duration, Section, Span, parse_list, read_text_file, unique_names

KINDS: dict[str, type[PolicyConfig]] = {
    "images": ImagePolicyConfig,
    "datasets": DatasetPolicyConfig,
    "pods": PodPolicyConfig,
    "gpus": GpuPolicyConfig,
    "registry": RegistryPolicyConfig,
}


_KEYS_INSTEAD = (
    "agents no longer accept a shared token; create keys with gpuwarden keys, and write "
    "private_key_file: /etc/gpuwarden/action-private-key"
)


class AgentActionsConfig(Section):
    """Access to the agents' actions. Agents verify requests with the public key, `agent.actions.public_key_file`."""

    removed_settings: ClassVar = {"token": _KEYS_INSTEAD, "token_file": _KEYS_INSTEAD}

    private_key_file: AbsolutePath | None = None
    limit: Span = Access.limit

    @field_validator("private_key_file")
    @classmethod
    def _check_key(cls, path: str | None) -> str | None:
        if path is not None:
            _read_signer(path)
        return path

    def access(self, tls: PeerTls | None) -> Access:
        """Access to the agents. Raise ValueError if the file of the private key is unreadable."""
        signer = _read_signer(self.private_key_file) if self.private_key_file is not None else None
        return Access(signer, self.limit, tls)


def _read_signer(path: str) -> RequestSigner:
    text = read_text_file(path)
    try:
        return RequestSigner(text)
    except ValueError as error:
        raise ValueError(f"{quoted(path)} {error}") from None


def _parse_policy(value: object) -> PolicyConfig:
    """The policy of its kind. A pydantic union would add the kind to the path of each error."""
    if isinstance(value, PolicyConfig):
        return value
    if not isinstance(value, dict):
        raise ValueError(f"{quoted(value)} where a policy belongs; write 'kind: images' and its other lines below it")  # noqa: TRY004  # pydantic reports ValueErrors
    kind = value.get("kind")
    section = KINDS.get(kind) if isinstance(kind, str) else None
    if section is None:
        problem = "no kind is given" if kind is None else f"{quoted(kind)} is no kind of policy"
        raise ValueError(f"{problem}; write kind: and one of {', '.join(KINDS)}")
    try:
        return section.model_validate(value)
    except ValidationError as invalid:
        raise _explained(invalid, section) from None


def _explained(invalid: ValidationError, section: type[PolicyConfig]) -> ValidationError:
    """The same errors as text: only the section of this kind knows its keys and which values are secret."""
    errors = [
        InitErrorDetails(
            type=PydanticCustomError("value_error", "{error}", {"error": explain(error, section)}),
            loc=error["loc"],
            input=None,
        )
        for error in invalid.errors(include_url=False)
    ]
    return ValidationError.from_exception_data(section.__name__, errors, hide_input=True)


Policy = Annotated[PolicyConfig, PlainValidator(_parse_policy)]
_UNIQUE_NAMES = unique_names("two policies are called {}; give each its own name")  # the journal refers to them


class CleanupConfig(Section):
    """Cleanup policies. Only directories below those in `allow` can be datasets.

    Owners who get a notice may keep what it names, for at most `max_keep`; 0s: not at all. The link in the notice is
    enough for that unless `links_need_login`.
    """

    allow: Annotated[tuple[Root, ...], BeforeValidator(parse_list)] = ()
    policies: Annotated[tuple[Policy, ...], _UNIQUE_NAMES] = ()
    agents: AgentActionsConfig = AgentActionsConfig()
    max_keep: Duration = 7 * DAY
    links_need_login: bool = False

    def check(self) -> None:
        for policy in self.policies:
            if isinstance(policy, DatasetPolicyConfig) and not self._allows(policy.root):
                raise ValueError(
                    f"{policy.name}: {policy.root} is not below a directory that is allowed; "
                    f"write allow: [{policy.root}] beside policies"
                )

    def _allows(self, root: str) -> bool:
        return any(root == allowed or root.startswith(f"{allowed}/") for allowed in self.allow)

    def settings(self, timezone: str = When.timezone) -> tuple[CleanupPolicy, ...]:
        """The policies for the planner; `timezone` is that of schedules without their own."""
        return tuple(policy.policy(timezone) for policy in self.policies)
