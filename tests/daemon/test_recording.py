"""The report of a real daemon on a simulated cluster over the real protocols matches what happened."""

from __future__ import annotations

import csv
import io
import json
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import msgspec
import pytest

from monitor.alert.store import FILE as ALERTS
from monitor.alert.store import AlertStore
from monitor.report.mail import LAST_SENT_KEY
from monitor.report.model import Report, ReportRow
from monitor.sim.manifests import Workload
from monitor.sim.outages import OutageContext
from monitor.sim.simulation import Simulation
from tests.support import free_port, wait_until
from tests.support.command import STOP_LIMIT, command, get, quiet_environment, run, running
from tests.support.receivers.bots import WeComBot

NODES, GPUS = 3, 8
CYCLE = 0.4
IDLE_AFTER = 1.0
WOBBLE = 0.06  # of a simulated GPU's utilisation
LATE = 1.6  # seconds until a change is recorded: agent poll, view update, evaluation, and a margin


def work(name: str, user: str, gpus: int, busy: float) -> Workload:
    return Workload(name, "lab", user, f"vc-{user}", gpus, "harbor.lab/lab/train:1", busy=busy)


@dataclass
class World:
    """A daemon on a simulated cluster, with the times of events."""

    environ: dict[str, str]
    story: Simulation
    began: float = 0.0
    ended: float = 0.0
    asked: float = 0.0

    @property
    def url(self) -> str:
        return f"http://{self.environ['GPUWARDEN_DAEMON__LISTEN']}"

    def report(self, by: str = "user") -> Report:
        status, _, body = get(f"{self.url}/v1/report?since=1h&by={by}")
        assert status == 200, body
        return msgspec.json.decode(body, type=Report)


def follow(story: Simulation, folder: Path, **more: str) -> dict[str, str]:
    return quiet_environment(
        folder / "state",
        DAEMON__LISTEN=f"127.0.0.1:{free_port()}",
        DAEMON__CYCLE=f"{CYCLE}s",
        DAEMON__KUBERNETES__ENABLED="yes",
        DAEMON__KUBERNETES__KUBECONFIG=str(story.kubeconfig(folder)),
        DAEMON__AGENTS__PORT=str(story.agents_port),
        DAEMON__AGENTS__INTERVAL="300ms",
        DAEMON__GPU__IDLE_AFTER=f"{IDLE_AFTER}s",
        **more,
    ) | {"LC_ALL": "C.UTF-8"}


@pytest.fixture(scope="module")
def story() -> Iterator[Simulation]:
    told = Simulation(NODES, GPUS, outages=())
    told.start()
    yield told
    told.stop()


@pytest.fixture(scope="module")
def world(story: Simulation, tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """Three users start jobs; a few seconds later one job ends and leaves its processes; then time passes."""
    made = World(follow(story, tmp_path_factory.mktemp("world")), story)

    def begin(stage: OutageContext) -> None:
        stage.submit("t", work("bert-0", "steady", 2, 0.5), "gpu01")
        stage.submit("t", work("notes-0", "idler", 1, 0.0), "gpu01")
        stage.submit("t", work("gpt-0", "undead", 2, 1.0), "gpu02")

    def end(stage: OutageContext) -> None:
        stage.cluster.finish(stage.pods["t"][2], keep_processes=True)

    with running(command("daemon"), made.environ, stdout=subprocess.DEVNULL):
        wait_until(lambda: _seen(made) == NODES * GPUS, 20, "all cards are seen")
        story.call(begin)
        made.began = time.time()
        time.sleep(3.0)
        story.call(end)
        made.ended = time.time()
        time.sleep(3.0)
        yield made


def _seen(world: World) -> int:
    try:
        gpus = json.loads(get(f"{world.url}/v1/view")[2])["gpus"]
    except OSError:
        return 0
    return sum(gpu["state"] != "unknown" for gpu in gpus)


def row(made: Report, name: str) -> ReportRow:
    return next(row for row in made.rows if row.name == name)


def about(seconds: float, gpus: int) -> object:
    """Expected range of a report's hours for something that lasted this many GPU-seconds."""
    return pytest.approx(gpus * seconds / 3600, abs=gpus * LATE / 3600)


def test_gpu_hours_are_what_happened(world: World) -> None:
    made, now = world.report(), time.time()
    steady, idler, undead = (row(made, name) for name in ("steady", "idler", "undead"))
    assert steady.allocated_hours == about(now - world.began, 2)
    assert steady.used_hours is not None
    # A pod has its GPUs before they work and before an agent reports it: that time counts as unused.
    least, most = (0.5 - WOBBLE) * (steady.allocated_hours - 2 * LATE / 3600), (0.5 + WOBBLE) * steady.allocated_hours
    assert least <= steady.used_hours <= most
    assert steady.utilization_ratio == pytest.approx(steady.used_hours / steady.allocated_hours, rel=0.01)
    assert (steady.idle_hours, steady.zombie_hours) == (0, 0)
    assert idler.allocated_hours == about(now - world.began, 1)
    assert idler.idle_hours == about(now - world.began - IDLE_AFTER, 1)
    assert idler.wasted_hours == idler.idle_hours
    assert undead.allocated_hours == about(world.ended - world.began, 2)
    assert undead.zombie_hours == about(now - world.ended, 2)
    assert undead.wasted_hours == undead.zombie_hours


@pytest.mark.parametrize("by", ["user", "queue", "node"])
def test_every_card_is_accounted_for_all_the_time(world: World, by: str) -> None:
    made = world.report(by)
    assert made.total.hours == pytest.approx(sum(row.hours for row in made.rows))
    assert made.total.hours * 3600 == pytest.approx(NODES * GPUS * made.watched_seconds, rel=0.25)
    assert made.watched_seconds <= made.until - made.since


def test_by_queue_and_by_node_it_is_the_same(world: World) -> None:
    queues, nodes = world.report("queue"), world.report("node")
    assert row(queues, "vc-steady").allocated_hours > 0
    assert {row.name for row in nodes.rows} == {"gpu01", "gpu02", "gpu03"}
    assert all((row.disk_bytes or 0) > 30 << 30 for row in nodes.rows)  # images of its cache
    assert row(nodes, "gpu01").idle_hours > 0
    assert row(nodes, "gpu02").zombie_hours > 0
    assert nodes.total.cleaned_bytes == 0


FORMATS = [
    ("en", "table", "By user", "idler"),
    ("zh", "table", "按用户", "idler"),
    ("zh", "html", "<h2>按用户</h2>", "<td class=\"t\">idler</td>"),
    ("en", "csv", "user,allocated_hours", "idler,"),
]  # fmt: skip


@pytest.mark.parametrize(("lang", "form", "head", "body"), FORMATS)
def test_the_command(world: World, lang: str, form: str, head: str, body: str) -> None:
    result = run("report", "--since", "2h", "--format", form, "--lang", lang, environ=world.environ)
    assert (result.returncode, result.stderr) == (0, "")
    assert head in result.stdout
    assert body in result.stdout


def test_the_command_for_programs(world: World) -> None:
    asked = [run("report", "--by", "node", *more, environ=world.environ) for more in (["--json"], ["--format", "json"])]
    for result in asked:
        assert msgspec.json.decode(result.stdout, type=Report).by == "node"


def test_to_download(world: World) -> None:
    for form in ("csv", "html"):
        status, headers, body = get(f"{world.url}/v1/report?format={form}&lang=zh")
        assert status == 200
        assert headers["content-type"] == f"text/{form}; charset=utf-8"
        assert headers["content-disposition"] == f'attachment; filename="gpuwarden-report.{form}"'
        assert headers["cache-control"] == "no-store"
        assert "idler" in body
        if form == "csv":
            assert body.startswith("\ufeffuser,")
            assert len(list(csv.reader(io.StringIO(body)))) > 3


WRONG = ["since=0", "since=soon", "since=401d", "by=card", "by=hour;DROP TABLE buckets", "format=pdf", "lang=fr"]


@pytest.mark.parametrize("query", WRONG)
def test_wrong_questions(world: World, query: str) -> None:
    status, _, body = get(f"{world.url}/v1/report?{query.replace(' ', '%20')}")
    assert (status, list(json.loads(body))) == (400, ["error"])


def test_without_a_daemon_it_says_who_keeps_the_record(tmp_path: Path) -> None:
    environ = quiet_environment(tmp_path, DAEMON__LISTEN=f"127.0.0.1:{free_port()}")
    result = run("report", environ=environ)
    assert (result.returncode, result.stdout) == (3, "")
    assert "the report needs its usage records" in result.stderr
    assert run("report", "--since", "soon", environ=environ).returncode == 2


def test_a_kill_forgets_nothing_that_was_reported_and_the_missed_report_is_sent(
    story: Simulation, tmp_path: Path
) -> None:
    with WeComBot() as bot:
        environ = follow(
            story,
            tmp_path,
            DAEMON__ALERTS__RECEIVERS=json.dumps([{"kind": "wecom", "url": bot.url, "language": "zh"}]),
            DAEMON__ALERTS__ROUTES="[{match: {alertname: nothing}, receivers: [wecom]}, {receivers: []}]",
            DAEMON__REPORT="{cron: '* * * * *', since: 1d, by: node}",
        )
        killed = World(environ, story)
        with running(command("daemon"), environ, stdout=subprocess.DEVNULL) as process:
            wait_until(lambda: _seen(killed) == NODES * GPUS, 20, "all cards are seen")
            wait_until(lambda: killed.report().total.hours > 0, 10, "something is recorded")
            before = killed.report().total
            process.kill()
            process.wait(60)
        store = AlertStore(str(tmp_path / "state" / ALERTS))
        store.send((), {LAST_SENT_KEY: repr(time.time() - 3600).encode()})  # no daemon ran for an hour
        store.close()
        with running(command("daemon"), environ, stdout=subprocess.DEVNULL) as process:
            wait_until(lambda: _told(bot), 30, "the report is sent")
            after = killed.report().total
            process.terminate()
            assert process.wait(STOP_LIMIT) == 0
    assert after.allocated_hours > before.allocated_hours > 0
    (message,) = _told(bot)[:1]
    assert "【报告】分配" in message
    assert "gpu01：" in message


def _told(bot: WeComBot) -> list[str]:
    contents = [message["markdown"]["content"] for message in bot.taken]
    return [content for content in contents if "【报告】" in content]
