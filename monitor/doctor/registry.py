"""All checks in display order. To add one: its file in `checks`, its sentences in i18n, a line here, its test."""

from __future__ import annotations

from monitor.doctor.checks import (
    agents,
    clock,
    config,
    driver,
    kubernetes,
    language,
    node,
    packages,
    ports,
    receivers,
    rights,
    sockets,
    state,
)
from monitor.doctor.model import Check

CHECKS: tuple[Check, ...] = (
    *config.CHECKS,
    *packages.CHECKS,
    *kubernetes.CHECKS,
    *rights.CHECKS,
    *agents.CHECKS,
    *driver.CHECKS,
    *sockets.CHECKS,
    *node.CHECKS,
    *receivers.CHECKS,
    *state.CHECKS,
    *ports.CHECKS,
    *clock.CHECKS,
    *language.CHECKS,
)
