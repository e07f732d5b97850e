"""English: signing in, and what an action will do."""

from __future__ import annotations

WORDS: dict[str, str] = {
    "access.login.title": "Sign in",
    "access.login.name": "Name",
    "access.login.password": "Password",
    "access.login.code": "Code or token",
    "access.login.button": "Sign in",
    "access.login.how": "Sign in with your name and password.",
    "access.login.how-only-code": "Sign in with a code: run gpuwarden login-link where the daemon runs; or a token.",
    "access.login.how-code": "Or with a code: run gpuwarden login-link where the daemon runs. A token works as well.",
    "access.login.wrong": "Name or password is wrong.",
    "access.login.code-wrong": "The code has been used or has expired, or the token is wrong.",
    "access.login.locked": "Too many attempts. Try again in {seconds} s.",
    "access.database-locked": (
        "The change was not saved: another process locks the daemon's database. Try again in a few seconds."
    ),
    "act.kill": "Kill process {pid} ({process}) on {node}, which holds GPU {gpu}.",
    "act.evict": "Evict pod {pod} of {user} from {node}: graceful termination, disruption budgets are respected.",
    "act.delete": "Delete pod {pod} of {user} on {node}: graceful termination, then it is killed.",
    "act.delete-waiting": "Delete pod {pod} of {user}, which has no node yet.",
    "act.delete-finished": "Delete pod {pod} of {user}, which has already finished ({phase}).",
    "act.gone": "Pod {pod} no longer exists: no action.",
    "act.frees": "This frees {count:GPU|GPUs} of {node}.",
    "act.cordon": "Cordon {node}: no new pods are scheduled there. The {count:pod|pods} on it keep running.",
    "act.uncordon": "Uncordon {node}: new pods are scheduled there again. {count:GPU is|GPUs are} free on it.",
    "act.warn.comes-back": "{kind} {name} will probably start a replacement for {pod}.",
    "act.warn.system": "{pod} is a system pod ({namespace}).",
    "act.warn.terminating": "{pod} is already being deleted.",
    "act.warn.cordoned": "{node} is already cordoned.",
    "act.warn.not-cordoned": "{node} is not cordoned.",
    "act.nobody": "an unknown user",
    "act.did.done": "Done.",
    "act.did.refused": "Not done: the state has changed.",
    "act.did.later": "Not done yet: it may be retried later.",
    "act.did.failed": "Failed.",
    "lease.elsewhere": "This replica is not the leader: {holder} holds the lease {lease}. Use that replica.",
    "lease.nobody": (
        "No replica holds the lease {lease} at the moment, so there is no leader. Try again in half a minute."
    ),
}
