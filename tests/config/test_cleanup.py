# ruff: noqa: E501  # messages are quoted whole
"""Cleanup policies as users write them, and the messages for invalid ones."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from monitor.cleanup import policy as of
from monitor.cleanup.model import Mode
from monitor.config.cleanup import KINDS
from monitor.config.file import ConfigError, load
from monitor.config.root import Config

GIB = 1024**3
SMALLEST: dict[str, dict[str, Any]] = {
    "images": {},
    "datasets": {"root": "/mnt/share", "node": "n1", "cron": "0 3 * * *"},
    "pods": {"cron": "0 3 * * *"},
    "gpus": {"cron": "*/5 * * * *"},
    "registry": {"cron": "0 4 * * sun", "url": "https://harbor.lab"},
}


def policies(*given: dict[str, Any], allow: tuple[str, ...] = ("/mnt/share",)) -> tuple[of.CleanupPolicy, ...]:
    cleanup = {"allow": list(allow), "policies": list(given)}
    ops = {"receivers": [{"kind": "console", "name": "ops"}]}
    return Config.model_validate({"daemon": {"alerts": ops, "cleanup": cleanup}}).daemon.cleanup.settings()


def problems(folder: Path, text: str) -> list[str]:
    file = folder / "gpuwarden.yml"
    file.write_text(text, encoding="utf-8")
    with pytest.raises(ConfigError) as refused:
        load(str(file), {})
    return [str(each).removeprefix(f"{file}:") for each in refused.value.problems]


def test_nothing_is_cleaned_up_unless_told() -> None:
    cleanup = load(None, {}).daemon.cleanup
    assert (cleanup.settings(), cleanup.allow) == ((), ())


@pytest.mark.parametrize("kind", KINDS)
def test_the_least_that_has_to_be_written(kind: str) -> None:
    (found,) = policies({"kind": kind, "name": "p", **SMALLEST[kind]})
    assert (found.kind, found.name, found.mode, found.announce) == (kind, "p", Mode.DRY_RUN, of.DAY)
    assert found.caps == of.Caps()


def test_defaults_are_those_of_the_policies() -> None:
    images, pods = policies({"kind": "images", "name": "a"}, {"kind": "pods", "name": "b", "cron": "0 3 * * *"})
    assert images == of.ImagePolicy(name="a")
    assert pods == of.PodPolicy(name="b", when=of.When(cron="0 3 * * *"))


@pytest.mark.parametrize(
    ("daemon", "policy", "timezone"),
    [
        ({"timezone": "Asia/Shanghai"}, {}, "Asia/Shanghai"),
        ({"alerts": {"timezone": "Asia/Shanghai"}}, {}, "Asia/Shanghai"),
        ({"timezone": "Asia/Shanghai"}, {"timezone": "UTC"}, "UTC"),
    ],
)
def test_a_schedule_is_in_the_time_zone_of_the_daemon_unless_it_has_its_own(
    daemon: dict[str, Any], policy: dict[str, Any], timezone: str
) -> None:
    cleanup = {"policies": [{"kind": "pods", "name": "nightly", "cron": "0 3 * * *"} | policy]}
    config = Config.model_validate({"daemon": daemon | {"cleanup": cleanup}}).daemon
    (pods,) = config.cleanup.settings(config.zone)
    assert pods.when.timezone == timezone


def test_another_time_zone_of_the_daemon_does_not_announce_policies_again() -> None:
    nightly = {"kind": "pods", "name": "nightly", "cron": "0 3 * * *"}
    before = of.PodPolicy(name="nightly", when=of.When(cron="0 3 * * *"))  # as in versions whose default was UTC
    cleanup = Config.model_validate({"daemon": {"cleanup": {"policies": [nightly]}}}).daemon.cleanup
    assert {policy.fingerprint for zone in ("UTC", "Asia/Shanghai") for policy in cleanup.settings(zone)} == {
        before.fingerprint
    }
    own = Config.model_validate({"daemon": {"cleanup": {"policies": [nightly | {"timezone": "Asia/Shanghai"}]}}})
    (policy,) = own.daemon.cleanup.settings("UTC")
    assert policy.fingerprint != before.fingerprint


@pytest.mark.parametrize(
    ("marks", "yields"),
    [
        ({}, True),
        ({"high": None}, True),
        ({"low": "60%"}, True),
        ({"high": "80%"}, False),  # equal to the default but set explicitly
        ({"high": "75%", "low": "60%"}, False),
    ],
)
def test_marks_of_images_yield_to_the_kubelet_unless_they_are_given(marks: dict[str, Any], yields: bool) -> None:
    (images,) = policies({"kind": "images", "name": "a"} | marks)
    assert images.when.yield_to_kubelet is yields


def test_everything_that_is_given_reaches_the_planner() -> None:
    given = {
        "kind": "datasets", "name": "old", "mode": "enforce", "root": "/mnt/share/nlp/", "node": "nas-01",
        "pattern": "*/datasets/*", "cron": "0 3 * * 0", "timezone": "Asia/Shanghai", "high": "90%", "low": 0.8,
        "caps": {"items": 5, "bytes": "2TiB", "minutes": 90, "error_share": "5%"}, "announce": "2d",
        "receivers": "ops", "min_age": "90d", "without_atime": True, "notice": "14d", "trash_grace": "3d",
        "quota": "1TiB", "quotas": {"zhang": "5TiB"}, "pins": ["*/golden/*"], "owners_kept": "root",
        "whole_root_is_use": False, "entries_per_second": 5000, "files": True,
    }  # fmt: skip
    assert policies(given) == (
        of.DatasetPolicy(
            name="old", mode=Mode.ENFORCE, root="/mnt/share/nlp", node="nas-01", pattern="*/datasets/*",
            when=of.When("0 3 * * 0", "Asia/Shanghai", 0.9, 0.8), caps=of.Caps(5, 2048 * GIB, 90, 0.05),
            announce=2 * of.DAY, receivers=("ops",), min_age=90 * of.DAY, without_atime=True, notice=14 * of.DAY,
            trash_grace=3 * of.DAY, quota=1024 * GIB, quotas={"zhang": 5120 * GIB}, pins=("*/golden/*",),
            owners_kept=("root",), whole_root_is_use=False, entries_per_second=5000, files=True,
        ),
    )  # fmt: skip


def test_a_limit_can_be_switched_off() -> None:
    pods, gpus, images = policies(
        {"kind": "pods", "name": "a", "cron": "0 3 * * *", "finished_after": "off", "stuck_after": None},
        {"kind": "gpus", "name": "b", "cron": "0 3 * * *", "zombie_after": False, "exempt": {"users": "root"}},
        {"kind": "images", "name": "c", "cron": "0 3 * * *", "high": "off", "low": "off"},
    )
    assert isinstance(pods, of.PodPolicy)
    assert (pods.finished_after, pods.stuck_after) == (None, 1800.0)
    assert isinstance(gpus, of.GpuPolicy)
    assert (gpus.zombie_after, gpus.exempt) == (None, of.Exempt(users=("root",)))
    assert images.when == of.When(cron="0 3 * * *")


WRONG: list[tuple[dict[str, Any], str]] = [
    ({"kind": "images", "high": "60%"}, ": low has to be below high: it is where a run stops, high is where it begins"),
    ({"kind": "images", "low": "off"}, ": high is given without low; say where a run stops, for example low: 70%"),
    ({"kind": "images", "mode": "delete"}, ".mode: 'delete' is not one of 'dry-run' or 'enforce'"),
    ({"kind": "images", "hihg": "60%"}, ".hihg: unknown key; did you mean 'high'?"),
    ({"kind": "images", "root": "/x"}, ".root: unknown key"),
    ({"kind": "images", "caps": {"itms": 3}}, ".caps.itms: unknown key; did you mean 'items'?"),
    ({"kind": "images", "caps": {"items": 0}}, ".caps.items: 0 is too small; the least is 1"),
    ({"kind": "image"}, ": 'image' is no kind of policy; write kind: and one of images, datasets, pods, gpus, registry"),
    ({}, ": no kind is given; write kind: and one of images, datasets, pods, gpus, registry"),
    ({"kind": "pods"}, ': it would never run; give cron, for example cron: "0 3 * * *"'),
    ({"kind": "pods", "cron": "0 3 * * *", "high": "80%", "low": "70%"}, ": high and low say nothing about pods; give cron"),
    ({"kind": "pods", "cron": "0 3 * *"}, ": '0 3 * *' is not a schedule: write minute, hour, day, month and day of the week, as in a crontab"),
    ({"kind": "pods", "cron": "0 3 * * *", "timezone": "Asia/Peking"}, ".timezone: 'Asia/Peking' is not a time zone: write one such as Asia/Shanghai or UTC"),
    ({"kind": "gpus", "cron": "0 3 * * *", "idle_after": "1m"}, ".idle_after: 1m is too short; the least is 10m"),
    ({"kind": "gpus", "cron": "0 3 * * *", "name": "a b"}, ".name: 'a b' cannot be a policy's name; use letters, digits, '-', '_' and '.'"),
    ({"kind": "datasets"}, ".root: is required and not given"),
    ({"kind": "datasets", "root": "share"}, ".root: 'share' is not an absolute path; it has to begin with /"),
    ({"kind": "datasets", "root": "/mnt/../home"}, ".root: '/mnt/../home' is not a plain path; write /home"),
    ({"kind": "datasets", "root": "/"}, ".root: '/' is too wide to be a root of datasets; name the directory that holds them"),
    ({"kind": "datasets", "root": "/home/"}, ".root: '/home/' is too wide to be a root of datasets; name the directory that holds them"),
    ({"kind": "datasets", "root": "/var/lib/docker"}, ".root: '/var/lib/docker' belongs to the system and cannot be a root of datasets"),
    ({"kind": "datasets", "root": "/etc"}, ".root: '/etc' belongs to the system and cannot be a root of datasets"),
    ({"kind": "datasets", "root": "/mnt/share", "pattern": "../*"}, ".pattern: '../*' is not a pattern below the root; write for example */datasets/*"),
    ({"kind": "datasets", "root": "/mnt/share", "pattern": "/a"}, ".pattern: '/a' is not a pattern below the root; write for example */datasets/*"),
    ({"kind": "datasets", "root": "/mnt/share", "pattern": "**/a"}, ".pattern: '**/a' has no fixed depth; write one * for each level"),
    ({"kind": "datasets", "root": "/mnt/share", "min_age": "1h"}, ".min_age: 1h is too short; the least is 1d"),
    ({"kind": "registry", "cron": "0 3 * * *", "url": "harbor.lab"}, ": 'harbor.lab' is not the address of a Harbor; write for example https://harbor.lab"),
    ({"kind": "registry", "cron": "0 3 * * *", "url": "https://a:s3cret@harbor.lab"}, ": an address holds no password; use password_file"),
    ({"kind": "registry", "cron": "0 3 * * *", "url": "https://harbor.lab", "username": "a"}, ": username and password_file go together; give both"),
    ({"kind": "registry", "cron": "0 3 * * *", "url": "https://harbor.lab", "gc": False, "retention": False}, ": it would do nothing; leave retention or gc on"),
]  # fmt: skip


@pytest.mark.parametrize(("given", "expect"), WRONG)
def test_what_is_wrong_is_said_where_it_stands(tmp_path: Path, given: dict[str, Any], expect: str) -> None:
    lines = "".join(f"        {key}: {value!r}\n" for key, value in ({"name": "p"} | given).items())
    text = f"daemon:\n  cleanup:\n    policies:\n      -\n{lines}"
    found = problems(tmp_path, text)
    assert any(f"daemon.cleanup.policies[0]{expect}" in each for each in found), found
    assert "s3cret" not in "\n".join(found)


def test_each_problem_has_its_line(tmp_path: Path) -> None:
    text = """
daemon:
  cleanup:
    policies:
      - kind: images
        name: a
        min_age: soon
      - 7
      - kind: pods
        name: b
        cron: "0 3 * * *"
        exempt:
          users: [zhang]
          user: li
    """
    assert problems(tmp_path, text) == [
        "7: daemon.cleanup.policies[0].min_age: 'soon' is not a duration; write for example 30s, 15m, 1h30m or 7d",
        "8: daemon.cleanup.policies[1]: 7 where a policy belongs; write 'kind: images' and its other lines below it",
        "14: daemon.cleanup.policies[2].exempt.user: unknown key; did you mean 'users'?",
    ]


def test_names_are_unlike_and_roots_are_allowed(tmp_path: Path) -> None:
    twice = "daemon: {cleanup: {policies: [{kind: images, name: a}, {kind: images, name: a}]}}"
    assert problems(tmp_path, twice) == [
        "1: daemon.cleanup.policies: two policies are called 'a'; give each its own name"
    ]
    for root, allow in (("/mnt/share", ()), ("/mnt/sharer", ("/mnt/share",)), ("/mnt/share", ("/mnt/share/x",))):
        with pytest.raises(ValueError, match="is not below a directory that is allowed; write allow: "):
            policies({"kind": "datasets", "name": "d", **SMALLEST["datasets"], "root": root}, allow=allow)
    (found,) = policies({"kind": "datasets", "name": "d", **SMALLEST["datasets"], "root": "/mnt/share/x"})
    assert isinstance(found, of.DatasetPolicy)
    assert found.root == "/mnt/share/x"
    with pytest.raises(ValueError, match="too wide"):
        policies(allow=("/home",))
