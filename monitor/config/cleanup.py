"""The policies of cleanup as settings.

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

from typing import Annotated, Self

from pydantic import AfterValidator, BeforeValidator, PlainValidator, ValidationError, model_validator
from pydantic_core import InitErrorDetails, PydanticCustomError

from monitor.base.units import quoted
from monitor.cleanup.policy import CleanupPolicy
from monitor.config.agent_actions import ActingConfig
from monitor.config.messages import explain
from monitor.config.policies import (
    DatasetsConfig,
    GpusConfig,
    ImagesConfig,
    PodsConfig,
    PolicyConfig,
    RegistryConfig,
    Root,
    parse_list,
)
from monitor.config.types import Section

KINDS: dict[str, type[PolicyConfig]] = {
    "images": ImagesConfig,
    "datasets": DatasetsConfig,
    "pods": PodsConfig,
    "gpus": GpusConfig,
    "registry": RegistryConfig,
}


def parse_policy(value: object) -> PolicyConfig:
    """Given what was written, return the policy of its kind. Raise ValueError or ValidationError.

    The kind is looked up here and not by the library, so that a message names the setting as it stands in the file.
    """
    if isinstance(value, PolicyConfig):
        return value
    if not isinstance(value, dict):
        raise ValueError(f"{quoted(value)} where a policy belongs; write 'kind: images' and its other lines below it")  # noqa: TRY004  # the library reports ValueErrors
    kind = value.get("kind")
    section = KINDS.get(kind) if isinstance(kind, str) else None
    if section is None:
        given = "no kind is given" if kind is None else f"{quoted(kind)} is no kind of policy"
        raise ValueError(f"{given}; write kind: and one of {', '.join(KINDS)}")
    try:
        return section.model_validate(value)
    except ValidationError as invalid:
        raise _in_words(invalid, section) from None


def _in_words(invalid: ValidationError, section: type[PolicyConfig]) -> ValidationError:
    """Return the same errors in words, as only the section of this kind knows them: its keys, and what is secret."""
    errors = [
        InitErrorDetails(
            type=PydanticCustomError("value_error", "{error}", {"error": explain(error, section)}),
            loc=error["loc"],
            input=None,
        )
        for error in invalid.errors(include_url=False)
    ]
    return ValidationError.from_exception_data(section.__name__, errors, hide_input=True)


def unlike_names(policies: tuple[PolicyConfig, ...]) -> tuple[PolicyConfig, ...]:
    """Given policies, return them. Raise ValueError if two have the same name: runs are journaled under it."""
    seen: set[str] = set()
    for policy in policies:
        if policy.name in seen:
            raise ValueError(f"two policies are called {quoted(policy.name)}; give each its own name")
        seen.add(policy.name)
    return policies


Written = Annotated[PolicyConfig, PlainValidator(parse_policy)]


class CleanupConfig(Section):
    """What may be cleaned up. Nothing below a directory that is not allowed here is ever a dataset."""

    allow: Annotated[tuple[Root, ...], BeforeValidator(parse_list)] = ()
    policies: Annotated[tuple[Written, ...], AfterValidator(unlike_names)] = ()
    agents: ActingConfig = ActingConfig()

    @model_validator(mode="after")
    def _roots_are_allowed(self) -> Self:
        for policy in self.policies:
            if isinstance(policy, DatasetsConfig) and not self._allows(policy.root):
                raise ValueError(
                    f"{policy.name}: {policy.root} is not below a directory that is allowed; "
                    f"write allow: [{policy.root}] beside policies"
                )
        return self

    def _allows(self, root: str) -> bool:
        return any(root == each or root.startswith(f"{each}/") for each in self.allow)

    def settings(self) -> tuple[CleanupPolicy, ...]:
        """Return the policies as planners take them."""
        return tuple(policy.policy() for policy in self.policies)
