"""What the README shows can be used as it stands."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from monitor.config_file import load

README = (Path(__file__).parents[1] / "README.md").read_text(encoding="utf-8")
EXAMPLES = re.findall(r"```yaml\n(.*?)```", README, flags=re.DOTALL)


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda text: text.splitlines()[-1].strip()[:40])
def test_the_examples_of_configuration_are_accepted(example: str, tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("https://qyapi.weixin.qq.com/cgi-bin/webhook/send?key=s3cret\n")
    file = tmp_path / "gpuwarden.yml"
    file.write_text(re.sub(r"(token_file|password_file|url_file): [^\s},]+", rf"\1: {secret}", example))
    load(str(file), {})


def test_there_are_examples() -> None:
    assert len(EXAMPLES) >= 3


def test_the_commands_of_the_readme_exist() -> None:
    makefile = (Path(__file__).parents[1] / "Makefile").read_text(encoding="utf-8")
    for name in set(re.findall(r"make ([a-z0-9-]+)", README)):
        assert re.search(rf"^{name}:", makefile, flags=re.MULTILINE), name
