"""Every documented configuration is valid as printed."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from monitor.base.signing import generate_keys
from monitor.config.file import load
from tests.docs.pages import Block, every_block

EXAMPLES = {block.text: block for block in every_block(("yaml", "yml"))}
ADDRESS = "https://qyapi.weixin.qq.com/cgi-bin/webhook/send?key=s3cret"
KEYS = generate_keys()
# Contents of referenced files: a URL, a key, owners, otherwise a token that differs for each file.
CONTENTS = {"url_file": ADDRESS, "private_key_file": KEYS.private, "public_key_file": KEYS.public}
CONTENTS["owners_file"] = "zhang: {wecom: ZhangSan}"
_FILES = re.compile(r"\b(\w*_file): ([^\s},]+)")


@pytest.mark.parametrize("block", EXAMPLES.values(), ids=str)
def test_a_configuration_is_accepted(block: Block, tmp_path: Path) -> None:
    def with_a_file(found: re.Match[str]) -> str:
        file = tmp_path / Path(found[2]).name
        file.write_text(CONTENTS.get(found[1], f"{file.name}-{'x' * 20}"))
        return f"{found[1]}: {file}"

    config = tmp_path / "gpuwarden.yml"
    config.write_text(_FILES.sub(with_a_file, block.text), encoding="utf-8")
    load(str(config), {})


def test_there_are_many() -> None:
    assert len(EXAMPLES) > 60
