"""A reader who follows a document: types its commands, answers its questions, and looks for what it says appears."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial

from tests.docs.pages import Block
from tests.docs.terminal import Terminal
from tests.support import wait_until
from tests.support.receivers.bots import WeComBot

GROUP = "in the group"  # mark of what a message says
DEMO, RUN = "make demo", "make run"  # run until they are stopped
QUESTION = re.compile(r"(?P<question>.+ \[[^\[\]]*\]:)(?: (?P<answer>\S.*))?")
DATE = re.compile(r"\d{4}-\d\d-\d\d")
_MARKUP = re.compile(r"<[^>]+>|[*`]")


@dataclass
class Reader:
    """`addresses` are replaced by the reader's own. A new terminal is opened while a program runs in the first one."""

    shell: Terminal
    new_terminal: Callable[[], Terminal]
    robot: WeComBot
    addresses: Mapping[str, str]
    _start: int = 0  # of what the last block has shown
    _running: str = ""

    def follow(self, page: list[Block]) -> Iterator[Block]:
        """Do what each block says, and return it. What does not succeed or appear fails the test."""
        for number, block in enumerate(page):
            following = page[number + 1] if number + 1 < len(page) else None
            if block.kind == "sh":
                self._type(block, dialogue_of(following))
            elif block.mark == GROUP:
                wait_until(partial(self._has_received, block.text), 60, f"in the group:\n{block.text}")
            else:
                words = "\n".join(line for line in block.text.splitlines() if not QUESTION.fullmatch(line))
                self.shell.wait_for(pattern(self._own(words)), f"is shown:\n{words}", self._start)
            yield block

    def _type(self, block: Block, dialogue: str) -> None:
        if self._running == DEMO:
            self.shell.stop()
        elif self._running:
            self.shell = self.new_terminal()
        self._running, self._start = "", len(self.shell.text)
        *before, last = block.text.splitlines()
        for line in before:
            self.shell.run(self._own(line))
        self.shell.type(self._own(last))
        if last in (DEMO, RUN):
            self._running = last
        else:
            self._answer(dialogue)
            self.shell.wait_for_success(last)

    def _answer(self, dialogue: str) -> None:
        """Wait for each question with its default, and type what stands behind it."""
        for found in map(QUESTION.fullmatch, dialogue.splitlines()):
            if found is not None:
                self.shell.wait_for(f"{re.escape(found['question'])} $", found["question"], self._start)
                self.shell.type(self._own(found["answer"] or ""))

    def _has_received(self, words: str) -> bool:
        """Whether messages to the group contain these lines."""
        contents = (message[message["msgtype"]]["content"] for message in self.robot.taken)
        received = "\n".join(_MARKUP.sub("", content) for content in contents)
        return re.search(pattern(self._own(words)), received) is not None

    def _own(self, words: str) -> str:
        for address, replacement in self.addresses.items():
            words = re.sub(rf"(?<!\w){re.escape(address)}(?!\w)", replacement.replace("\\", r"\\"), words)
        return words


def dialogue_of(block: Block | None) -> str:
    """The questions and answers of a block; nothing if it has none."""
    return block.text if block is not None and any(map(QUESTION.fullmatch, block.text.splitlines())) else ""


def pattern(expected: str) -> str:
    """Pattern of these lines in this order, with others between them. Columns may be wider; dates are other ones."""
    return r"[\s\S]*?".join(r"\s+".join(map(_word, line.split())) for line in expected.splitlines())


def _word(word: str) -> str:
    return r"\d{4}-\d\d-\d\d".join(map(re.escape, DATE.split(word)))
