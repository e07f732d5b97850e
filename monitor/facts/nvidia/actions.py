"""What to do about an error code, from the resolutions that NVIDIA names."""

from __future__ import annotations

from enum import StrEnum


class ErrorAction(StrEnum):
    """What an administrator does about an error. The texts are `xid.action.<action>`."""

    NONE = "none"
    RESTART_JOB = "restart-job"
    RESET_GPU = "reset-gpu"
    REBOOT_NODE = "reboot-node"
    CONTACT_VENDOR = "contact-vendor"
    UPDATE_SOFTWARE = "update-software"
    CHECK_POWER = "check-power"


class FollowUp(StrEnum):
    """What to do if an error returns after the action. The texts are `gpu-fault.then.<step>`."""

    CONTACT_VENDOR = "contact-vendor"
    CHECK_PROGRAM = "check-program"
    CHECK_SOFTWARE = "check-software"
    CHECK_LINK = "check-link"
    RESTART_FABRIC_MANAGER = "restart-fabric-manager"


# Weakest first: of several rows that match a line, the strongest counts.
STRENGTH = (
    ErrorAction.NONE,
    ErrorAction.RESTART_JOB,
    ErrorAction.CONTACT_VENDOR,
    ErrorAction.RESET_GPU,
    ErrorAction.REBOOT_NODE,
)
# A workflow is named by what it begins with. 48: the GPU has to be reset to retire the memory. 74: reset the link by
# resetting the GPU. 45 and CHECK_UVM: a program was ended, and another error says why, if there is one.
_ACTIONS = {
    "IGNORE": ErrorAction.NONE,
    "XID_154_EVAL": ErrorAction.NONE,  # XID 154 follows if something has to be done
    "RESTART_APP": ErrorAction.RESTART_JOB,
    "WORKFLOW_XID_45": ErrorAction.RESTART_JOB,
    "CHECK_UVM": ErrorAction.RESTART_JOB,
    "RESET_GPU": ErrorAction.RESET_GPU,
    "WORKFLOW_XID_48": ErrorAction.RESET_GPU,
    "WORKFLOW_NVLINK_ERR": ErrorAction.RESET_GPU,
    "RESTART_BM": ErrorAction.REBOOT_NODE,
    "RESTART_VM": ErrorAction.REBOOT_NODE,  # the node is the virtual machine
    "UPDATE_SWFW": ErrorAction.UPDATE_SOFTWARE,
    "CHECK_MECHANICALS": ErrorAction.CHECK_POWER,
    "CONTACT_SUPPORT": ErrorAction.CONTACT_VENDOR,
    "": ErrorAction.CONTACT_VENDOR,  # the catalogue names no resolution
}
# By the beginning of the investigatory resolution.
_FOLLOW_UPS = (
    ("CONTACT_SUPPORT", FollowUp.CONTACT_VENDOR),
    ("SYMPATHETIC_REPORT_SOLO", FollowUp.CONTACT_VENDOR),
    ("REPORT_ISSUE", FollowUp.CONTACT_VENDOR),
    ("CHECK_APP", FollowUp.CHECK_PROGRAM),
    ("WORKFLOW_XID_13", FollowUp.CHECK_PROGRAM),
    ("WORKFLOW_XID_31", FollowUp.CHECK_PROGRAM),
    ("UPDATE_SWFW", FollowUp.CHECK_SOFTWARE),
    ("INVESTIGATE_SW", FollowUp.CHECK_SOFTWARE),
    ("INVESTIGATE_HOST", FollowUp.CHECK_SOFTWARE),
    ("INVESTIGATE_", FollowUp.CHECK_LINK),
    ("CHECK_NVLINK", FollowUp.CHECK_LINK),
    ("Solo: RESTART_FM", FollowUp.RESTART_FABRIC_MANAGER),
)


def action_of(resolution: str) -> ErrorAction:
    """Action of an immediate resolution."""
    return _ACTIONS.get(resolution, ErrorAction.CONTACT_VENDOR)


def follow_up_of(resolution: str) -> FollowUp | None:
    """Next step of an investigatory resolution, if it names one."""
    return next((step for prefix, step in _FOLLOW_UPS if resolution.startswith(prefix)), None)


def strongest(actions: list[ErrorAction]) -> ErrorAction:
    """The action that includes the others."""
    return max(actions, key=lambda action: STRENGTH.index(action) if action in STRENGTH else 0)
