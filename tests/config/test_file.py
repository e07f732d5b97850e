from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from monitor.config.file import MAX_BYTES, ConfigError, ConfigProblem, default_path, load, variables
from monitor.config.root import Config
from tests.support import need

FIXTURES = sorted((Path(__file__).parents[1] / "fixtures" / "config").glob("*.yml"))
SECRETS = ("s3cret", "53012345", "Harbor12345")


def problems(path: Path | str | None, environ: dict[str, str] | None = None) -> list[str]:
    """Validation errors without the file name; empty if there are none."""
    try:
        load(None if path is None else str(path), environ or {})
    except ConfigError as error:
        return [str(problem).removeprefix(f"{path}:").strip() for problem in error.problems]
    return []


def written(tmp_path: Path, text: str) -> Path:
    file = tmp_path / "gpuwarden.yml"
    file.write_text(text, encoding="utf-8")
    return file


@pytest.mark.parametrize("file", FIXTURES, ids=lambda file: file.stem)
def test_each_bad_file_is_refused_in_these_words(file: Path) -> None:
    lines = file.read_text(encoding="utf-8").splitlines()
    expected = [line.removeprefix("# expect: ") for line in lines if line.startswith("# expect: ")]
    assert expected
    assert problems(file) == expected
    assert not any(secret in problem for secret in SECRETS for problem in problems(file))


def test_a_problem_reads_file_line_path_message(tmp_path: Path) -> None:
    file = written(tmp_path, "log_level: loud\n")
    with pytest.raises(ConfigError) as refused:
        load(str(file), {})
    message = "'loud' is not one of 'debug', 'info', 'warning' or 'error'"
    assert refused.value.problems == (ConfigProblem(str(file), 1, "log_level", message),)
    assert str(refused.value) == f"{file}:1: log_level: {message}"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "\n",
        "# only a comment\n",
        "---\n",
        "agent:\ndaemon:\n",
        "agent:\n  # listen: 0.0.0.0:9835\n",
        "\ufeff{}\n",
        "~",
    ],
)
def test_files_that_mean_the_defaults(tmp_path: Path, text: str) -> None:
    assert load(str(written(tmp_path, text)), {}) == Config()


def test_no_file_means_the_defaults() -> None:
    assert load(None, {}) == Config()


def test_a_whole_file(tmp_path: Path) -> None:
    text = """
        log_level: debug
        agent:
          listen: 0.0.0.0:9999
          node_name: gpu-01
          collectors:
            gpu: &often {interval: 1s, limit: 2s}
            xid:
              <<: *often
              limit: 3s
            shm: {enabled: no}
          mounts:
            - /mnt/share
            - path: /mnt/data
              writable: off
    """
    config = load(str(written(tmp_path, text)), {})
    assert config.agent.node_name == "gpu-01"
    assert (config.agent.collectors.xid.interval, config.agent.collectors.xid.limit) == (1.0, 3.0)
    assert not config.agent.collectors.shm.enabled
    assert [(mount.path, mount.writable) for mount in config.agent.mounts] == [
        ("/mnt/share", True),
        ("/mnt/data", False),
    ]


@pytest.mark.parametrize(
    ("name", "content", "expected"),
    [
        ("latin-1", b"log_level: info\nagent:\n  node_name: caf\xe9\n", ":3: is not UTF-8 text"),
        ("utf-16", "log_level: info\n".encode("utf-16"), ":1: is not UTF-8 text"),
        ("control character", b"log_level: info\n# \x07\n", ":2: the character U+0007 is not allowed in YAML"),
        ("too large", b"#" * (MAX_BYTES + 1), ": is larger than 1 MiB; is this a configuration file?"),
    ],
)
def test_files_that_are_no_text(tmp_path: Path, name: str, content: bytes, expected: str) -> None:
    file = tmp_path / "gpuwarden.yml"
    file.write_bytes(content)
    with pytest.raises(ConfigError) as refused:
        load(str(file), {})
    assert str(refused.value).startswith(f"{file}{expected}")


def test_a_missing_file_and_a_directory(tmp_path: Path) -> None:
    assert problems(tmp_path / "none.yml") == ["there is no such file"]
    assert problems(tmp_path) == ["is a directory; name the file in it"]
    assert problems("/dev/zero") == ["is larger than 1 MiB; is this a configuration file?"]


def test_a_file_that_may_not_be_read(tmp_path: Path) -> None:
    file = written(tmp_path, "")
    file.chmod(0)
    need(os.geteuid() == 0, "root, to become somebody else")
    tmp_path.chmod(0o755)
    os.seteuid(65534)
    try:
        found = problems(file)
    finally:
        os.seteuid(0)
    assert found == ["cannot be read: permission denied; run as a user who may read it, or change its mode"]


@pytest.mark.parametrize(
    ("name", "value", "path", "expected"),
    [
        ("GPUWARDEN_LOG_LEVEL", "debug", "log_level", "debug"),
        ("GPUWARDEN_AGENT__LISTEN", "0.0.0.0:1", "agent.listen.port", 1),
        ("GPUWARDEN_AGENT__COLLECTORS__GPU__INTERVAL", "1s", "agent.collectors.gpu.interval", 1.0),
        ("GPUWARDEN_AGENT__COLLECTORS__GPU__INTERVAL", "90", "agent.collectors.gpu.interval", 90.0),
        ("GPUWARDEN_AGENT__COLLECTORS__GPU__ENABLED", "false", "agent.collectors.gpu.enabled", False),
        ("GPUWARDEN_AGENT__COLLECTORS__GPU", "{enabled: false}", "agent.collectors.gpu.enabled", False),
        ("GPUWARDEN_AGENT__PATHS__CRI_SOCKETS", "[/a, /b]", "agent.paths.cri_sockets", ("/a", "/b")),
        ("GPUWARDEN_AGENT__NODE_NAME", "17", "agent.node_name", "17"),
        ("GPUWARDEN_AGENT__NODE_NAME", "a: b", "agent.node_name", "a: b"),
    ],
)
def test_a_variable_beats_the_file(tmp_path: Path, name: str, value: str, path: str, expected: object) -> None:
    file = written(tmp_path, "log_level: error\nagent:\n  listen: 127.0.0.1:5\n  collectors: {gpu: {interval: 7s}}\n")
    found: object = load(str(file), {name: value})
    for key in path.split("."):
        found = getattr(found, key)
    assert found == expected


@pytest.mark.parametrize("token", ["1234567890", "@at", "*star", "a:b", "{brace", "true", "#hash", "'quote"])
def test_a_token_in_a_variable_is_taken_as_it_is(token: str) -> None:
    assert load(None, {"GPUWARDEN_AGENT__TOKEN": token}).agent.read_token() == token


@pytest.mark.parametrize(
    ("environ", "expected"),
    [
        (
            {"GPUWARDEN_AGENT__LISTN": "x"},
            ["environment: GPUWARDEN_AGENT__LISTN: unknown setting; did you mean 'GPUWARDEN_AGENT__LISTEN'?"],
        ),
        ({"GPUWARDEN_": "x"}, ["environment: GPUWARDEN_: unknown setting"]),
        ({"GPUWARDEN_XYZ__ABC": "x"}, ["environment: GPUWARDEN_XYZ__ABC: unknown setting"]),
        (
            {"GPUWARDEN_AGENT__PROBE_TIMEOUT": "soon"},
            [
                (
                    "environment: GPUWARDEN_AGENT__PROBE_TIMEOUT: 'soon' is not a duration; "
                    "write for example 30s, 15m, 1h30m or 7d"
                )
            ],
        ),
        (
            {"GPUWARDEN_AGENT__MOUNTS": "[{path: /a, writeable: true}]"},
            ["environment: GPUWARDEN_AGENT__MOUNTS[0].writeable: unknown key; did you mean 'writable'?"],
        ),
        (
            {"GPUWARDEN_AGENT": "{probe_timeout: 1s, probe_timeout: 2s}"},
            ["environment: GPUWARDEN_AGENT.probe_timeout: duplicate key, already given in line 1"],
        ),
        (
            {"GPUWARDEN_AGENT__MOUNTS": "[/a"},
            [
                (
                    "environment: GPUWARDEN_AGENT__MOUNTS: column 4: not valid YAML: "
                    "the [ that opens in line 1 is not closed, or a comma is missing"
                )
            ],
        ),
        (
            {"GPUWARDEN_AGENT__LISTEN": "127.0.0.1:1", "GPUWARDEN_AGENT__LISTEN__PORT": "2"},
            ["environment: GPUWARDEN_AGENT__LISTEN__PORT: agent.listen is given as a whole; change it there"],
        ),
        (
            {"GPUWARDEN_AGENT__TOKEN": "s3 cret"},
            [
                (
                    "environment: GPUWARDEN_AGENT__TOKEN: a token has only letters, digits and ASCII signs, "
                    "no spaces and no line breaks"
                )
            ],
        ),
    ],
)
def test_bad_variables(environ: dict[str, str], expected: list[str]) -> None:
    assert problems(None, environ) == expected


@pytest.mark.parametrize(
    "name",
    [
        "GPUWARDEN_CONFIG",
        "GPUWARDEN_SERVICE_HOST",
        "GPUWARDEN_SERVICE_PORT_HTTP",
        "GPUWARDEN_PORT",
        "GPUWARDEN_PORT_9836_TCP",
        "GPUWARDEN_AGENT_PORT_9835_TCP_ADDR",
        "GPUWARDEN_AGENT_SERVICE_PORT",
        "GPUWARDENX",
        "OTHER",
    ],
)
def test_variables_that_are_not_ours(name: str) -> None:
    assert load(None, {name: "tcp://10.0.0.1:9836"}) == Config()


def test_a_variable_set_to_nothing_counts_as_not_set(tmp_path: Path) -> None:
    file = written(tmp_path, "log_level: error\n")
    assert load(str(file), {"GPUWARDEN_LOG_LEVEL": "", "GPUWARDEN_NONSENSE": ""}).log_level == "error"


def test_every_setting_has_a_variable() -> None:
    assert {"LOG_LEVEL", "AGENT", "AGENT__COLLECTORS__GPU__LIMIT"} <= set(variables())


def test_errors_of_file_and_environment_come_together_each_once(tmp_path: Path) -> None:
    file = written(tmp_path, "agent: {listen: x}\nlog_level: loud\n")
    found = problems(file, {"GPUWARDEN_DAEMON__LISTEN": "y", "GPUWARDEN_AGENT__LISTEN": "127.0.0.1:1"})
    assert [problem.split(": ")[:2] for problem in found] == [
        ["2", "log_level"],
        ["environment", "GPUWARDEN_DAEMON__LISTEN"],
    ]


# No commas: in {token: a,b} the b is a key, and keys appear in messages. So does the rest of a line after a }.
@settings(deadline=None)
@given(
    st.text(alphabet="abc:{}[]*&!@|>%#'\"\\ \n\t-~?", min_size=1).map(lambda text: f"Zq7{text}Zq7"),
    st.sampled_from(
        ["agent:\n  token: %s\n", "agent: {token: %s, listen: 5}\n", "agent:\n  token: '%s'\n  lisen: 5\n"]
    ),
)
def test_no_secret_is_ever_in_a_message(tmp_path_factory: pytest.TempPathFactory, secret: str, text: str) -> None:
    assume("{token" not in text or "}" not in secret)
    file = written(tmp_path_factory.getbasetemp(), text % secret)
    both = (problems(file), problems(None, {"GPUWARDEN_AGENT__TOKEN": secret, "GPUWARDEN_LOG_LEVEL": "x"}))
    assert not any(secret in problem or "Zq7" in problem for found in both for problem in found)


def test_a_key_cannot_reach_the_terminal(tmp_path: Path) -> None:
    found = problems(written(tmp_path, '"\\e[31mred": 1\n'))
    assert found == ["1: '\\x1b[31mred': unknown key; there are agent, daemon, log_level"]


def test_the_default_file() -> None:
    assert default_path({"GPUWARDEN_CONFIG": "/x.yml"}) == "/x.yml"
    assert default_path({}) in (None, "/etc/gpuwarden/gpuwarden.yml")
