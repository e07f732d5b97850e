# ruff: noqa: E501  # messages are quoted whole, as they were seen
from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from monitor.explain.keys import Key
from monitor.words import CATALOGS, LANGUAGES, en, fields, say, zh

ALL_KEYS = [key.value for key in Key]


@pytest.mark.parametrize("lang", LANGUAGES)
def test_every_key_and_no_other(lang: str) -> None:
    assert sorted(CATALOGS[lang]) == sorted(ALL_KEYS)


def test_the_same_fields_in_both() -> None:
    assert [key for key in ALL_KEYS if fields(en.WORDS[key]) != fields(zh.WORDS[key])] == []


@pytest.mark.parametrize("module", [en, zh])
def test_no_file_of_a_catalog_overrides_another(module: object) -> None:
    parts = [getattr(module, name).WORDS for name in ("queues", "nodes", "images", "starting", "crashes", "running")]
    assert sum(len(part) for part in parts) == len(module.WORDS)  # type: ignore[attr-defined]  # a catalog has it


def test_languages_are_not_mixed_up() -> None:
    chinese = {key for key, text in zh.WORDS.items() if any("一" <= letter <= "鿿" for letter in text)}
    assert [key for key in ALL_KEYS if not en.WORDS[key].isascii()] == []
    assert set(ALL_KEYS) - chinese == {"list_comma"}


def test_a_sentence_is_short_enough_to_be_read() -> None:
    assert [key for key in ALL_KEYS if len(en.WORDS[key]) > 330 or len(zh.WORDS[key]) > 200] == []


@pytest.mark.parametrize("value", [0, 1, 2, 1.5, -3, 10**15, "?", "a\x1b[31m\nb"])
@pytest.mark.parametrize("lang", LANGUAGES)
def test_any_number_and_any_text_fits(lang: str, value: str | float) -> None:
    said = {key: say(lang, key, dict.fromkeys(fields(text), value)) for key, text in CATALOGS[lang].items()}
    assert [key for key, text in said.items() if not text.isprintable()] == []


SENTENCES: list[tuple[str, str, str, dict[str, str | int | float], str]] = [
    ("one", "en", "refused_times", {"count": 1, "kind": "Job"}, "Tried 1 time by its controller (Job)."),
    ("many", "en", "refused_times", {"count": 2, "kind": "Job"}, "Tried 2 times by its controller (Job)."),
    ("none is many", "en", "refused_times", {"count": 0, "kind": "Job"}, "Tried 0 times by its controller (Job)."),
    ("Chinese has no plural", "zh", "refused_times", {"count": 2, "kind": "Job"}, "它的控制器（Job）已尝试 2 次。"),
    ("a duration", "en", "for_seconds", {"seconds": 185.2}, "for 3 min 5 s"),
    ("a duration in Chinese", "zh", "for_seconds", {"seconds": 185.2}, "已 3 分钟 5 秒"),
    ("bytes", "en", "memory_limit", {"limit": 16 * 1024**3}, "Its memory limit is 16 GiB."),
    ("a share", "en", "gpu_use", {"ratio": 0.05, "size": 0}, "GPU: 5% busy, 0 B of its memory used."),
    ("braces of JSON", "en", "workload_inactive_advice", {"workload": "w", "namespace": "n"}, """Switch it on: kubectl patch workload w -n n --type=merge -p '{"spec":{"active":true}}'"""),
    ("braces in a value are just text", "en", "scheduler_says", {"message": "taint {k: v}, {0} {x}"}, "The scheduler says: taint {k: v}, {0} {x}"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "lang", "key", "values", "expect"), SENTENCES, ids=[s[0] for s in SENTENCES])
def test_say(name: str, lang: str, key: str, values: dict[str, str | int | float], expect: str) -> None:
    assert say(lang, key, values) == expect


@pytest.mark.parametrize(("lang", "key"), [("en", "no_such_key"), ("tlh", "done"), ("en", "scheduler_says")])
def test_what_is_missing_is_an_error(lang: str, key: str) -> None:
    with pytest.raises(KeyError):
        say(lang, key, {})


@given(st.text())
def test_a_value_never_breaks_a_line(text: str) -> None:
    assert say("en", "scheduler_says", {"message": text}).isprintable()
