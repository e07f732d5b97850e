"""deb-src entries generated from the system's sources."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.lab.v1_20.deb_src import apt_options, deb822_to_source, one_line_to_source, write_sources

# From a Debian 12 image, in both formats.
DEB822 = """\
# Main archive
Types: deb
URIs: http://mirror.test/debian
Suites: bookworm bookworm-updates
Components: main
Signed-By: /usr/share/keyrings/debian-archive-keyring.gpg
"""
DEB822_SOURCE = """\
Types: deb-src
URIs: http://mirror.test/debian
Suites: bookworm bookworm-updates
Components: main
Signed-By: /usr/share/keyrings/debian-archive-keyring.gpg
"""


@pytest.mark.parametrize(
    ("given", "expect"),
    [
        pytest.param(
            "deb http://m.test/debian bookworm main", "deb-src http://m.test/debian bookworm main\n", id="plain"
        ),
        pytest.param(
            "deb [arch=amd64] http://m.test d main", "deb-src [arch=amd64] http://m.test d main\n", id="options"
        ),
        pytest.param("deb-src http://m.test d main", "deb-src http://m.test d main\n", id="source already"),
        pytest.param(
            "deb http://m.test d main\ndeb-src http://m.test d main", "deb-src http://m.test d main\n", id="both"
        ),
        pytest.param("# deb http://m.test d main\n\n", "", id="comments and blank lines"),
        pytest.param("  deb   http://m.test d main", "deb-src http://m.test d main\n", id="blanks"),
        pytest.param("", "", id="empty"),
    ],
)
def test_one_line_format(given: str, expect: str) -> None:
    assert one_line_to_source(given) == expect


@pytest.mark.parametrize(
    ("given", "expect"),
    [
        pytest.param(DEB822, DEB822_SOURCE, id="plain"),
        pytest.param(DEB822.replace("Types: deb", "Types: deb deb-src"), DEB822_SOURCE, id="both types"),
        pytest.param(f"{DEB822}\n{DEB822_SOURCE}", DEB822_SOURCE, id="both stanzas"),
        pytest.param(DEB822_SOURCE, DEB822_SOURCE, id="source already"),
        pytest.param(
            "Types: deb\nSuites: a\n\nTypes: deb\nSuites: b\n",
            "Types: deb-src\nSuites: a\n\nTypes: deb-src\nSuites: b\n",
            id="two stanzas",
        ),
        pytest.param("types: deb\nSuites: a\n", "Types: deb-src\nSuites: a\n", id="field names in any case"),
        pytest.param("# only a comment\n", "", id="comment"),
        pytest.param("", "", id="empty"),
    ],
)
def test_deb822_format(given: str, expect: str) -> None:
    assert deb822_to_source(given) == expect


def test_both_formats_of_a_system_are_read_and_doing_it_twice_changes_nothing(tmp_path: Path) -> None:
    system, ours = tmp_path / "etc", tmp_path / "ours"
    parts = system / "sources.list.d"
    parts.mkdir(parents=True)
    (system / "sources.list").write_text("deb http://m.test a main\n")
    (parts / "more.list").write_text("deb http://m.test b main\n")
    (parts / "debian.sources").write_text(DEB822)
    (parts / "off.sources.disabled").write_text("Types: deb\nSuites: off\n")
    for _ in range(2):
        write_sources(system, ours)
        written = {path.name: path.read_text() for path in (ours / "sources.list.d").iterdir()}
        assert written == {
            "source-packages.list": "deb-src http://m.test a main\ndeb-src http://m.test b main\n",
            "source-packages.sources": DEB822_SOURCE,
        }


def test_apt_is_kept_off_the_systems_sources_and_lists(tmp_path: Path) -> None:
    options = apt_options(tmp_path)
    assert "--option=Dir::Etc::SourceList=/dev/null" in options
    for name in ("Dir::Etc::SourceParts", "Dir::State::Lists", "Dir::Cache"):
        assert any(option.startswith(f"--option={name}={tmp_path}/") for option in options), name
