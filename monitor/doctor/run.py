"""Runs checks in parallel, each with its own timeout: a check that hangs does not delay the others."""

from __future__ import annotations

import os
import traceback
from collections.abc import Sequence

from monitor.base.msgspec_types import warm_up_msgspec
from monitor.base.threads import map_parallel, with_deadline
from monitor.doctor.checks.node import agent_could_run
from monitor.doctor.context import DoctorContext, NoConfigError
from monitor.doctor.model import Check, CheckResult, Verdicts, not_checked, problem


def run(checks: Sequence[Check], context: DoctorContext) -> tuple[CheckResult, ...]:
    """Results of all checks, in the order given."""
    warm_up_msgspec()
    return tuple(map_parallel(lambda check: _run_check(check, context), checks, len(checks), "doctor"))


def _run_check(check: Check, context: DoctorContext) -> CheckResult:
    timeout = check.timeout_seconds
    if context.request.send is not None and check.send_timeout_seconds is not None:
        timeout = check.send_timeout_seconds
    try:
        verdicts = with_deadline(timeout, lambda _cancellation: _verdicts(check, context))
    except TimeoutError:
        verdicts = (problem("late", seconds=timeout),)
    return CheckResult(check.name, verdicts)


def _verdicts(check: Check, context: DoctorContext) -> Verdicts:
    try:
        if check.on_node and not context.cached(agent_could_run):
            return (not_checked("node.no-agent"),)
        return check.judge(context.cached(check.read))
    except NoConfigError:
        return (not_checked("no-config"),)
    except Exception as error:  # a bug in one check must not stop the others
        return (problem("broken", why=_origin(error)),)


def _origin(error: Exception) -> str:
    """Type and origin of an unexpected error, without its message, which may contain a secret."""
    last = traceback.extract_tb(error.__traceback__)[-1]
    return f"{type(error).__name__}, {os.path.basename(last.filename)}:{last.lineno}"
