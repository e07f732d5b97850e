"""The configuration file: whether it can be read, and what it names is there."""

from __future__ import annotations

from dataclasses import dataclass

from monitor.doctor.model import Verdicts, not_checked, ok, problem, warning

OTHERS_READ = 0o004


@dataclass(frozen=True)
class ConfigFacts:
    """Which file was read, if any, and what is wrong with it: `file:line: setting: message` each."""

    path: str | None
    problems: tuple[str, ...] = ()


@dataclass(frozen=True)
class NamedFile:
    """A file that a setting names. `why` says why it cannot be read, `mode` who else can; None is unknown."""

    setting: str
    path: str
    secret: bool
    mode: int | None = None
    why: str | None = None


@dataclass(frozen=True)
class FilesFacts:
    """The files that the configuration names, and the settings whose secrets stand in the configuration itself.

    In a pod nobody else is there to read anything.
    """

    files: tuple[NamedFile, ...] = ()
    inline: tuple[str, ...] = ()
    config: NamedFile | None = None
    in_pod: bool = False


def judge(facts: ConfigFacts) -> Verdicts:
    """Given how reading it went, return what is wrong with the configuration."""
    if facts.problems:
        return tuple(problem("config.wrong", where=each) for each in facts.problems)
    return (ok("config.read", path=facts.path) if facts.path else ok("config.defaults"),)


def judge_files(facts: FilesFacts) -> Verdicts:
    """Given the files, return which are not there, and which secrets others can read."""
    wrong = [
        problem("config.no-file", setting=each.setting, path=each.path, why=each.why)
        for each in facts.files
        if each.why is not None
    ]
    if not facts.in_pod:
        wrong += [
            warning("config.open-secret", setting=each.setting, path=each.path, mode=f"{each.mode:04o}")
            for each in facts.files
            if each.secret and each.mode is not None and each.mode & OTHERS_READ
        ]
        config = facts.config
        if config is not None and facts.inline and config.mode is not None and config.mode & OTHERS_READ:
            settings = ", ".join(facts.inline)
            wrong.append(warning("config.open", path=config.path, mode=f"{config.mode:04o}", settings=settings))
    if wrong:
        return tuple(wrong)
    return (ok("config.files", count=len(facts.files)) if facts.files else not_checked("config.no-files"),)
