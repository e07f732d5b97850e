"""What is wrong with an open page: content that does not fit, findings of axe-core, errors of the browser."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from axe_playwright_python.base import AXE_SCRIPT
from playwright.sync_api import ConsoleMessage, Page, Response

SERIOUS = ("serious", "critical")
# Rules whose result depends on colours.
COLOUR_RULES = ("color-contrast", "link-in-text-block")

# An element overflows if its content is wider than itself and it neither scrolls nor shortens with an ellipsis.
OVERFLOWS = r"""() => {
  const name = (each) => each.tagName.toLowerCase() + (each.id && "#" + each.id) +
    (typeof each.className === "string" && each.className ? "." + each.className.trim().replace(/\s+/g, ".") : "");
  const path = (each) => [each.parentElement, each].filter(Boolean).map(name).join(" > ");
  const what = (each) => `${path(each)} "${each.textContent.trim().replace(/\s+/g, " ").slice(0, 60)}"`;
  const page = document.scrollingElement.scrollWidth;
  const found = page > innerWidth ? [`the page is ${page} px wide, the window ${innerWidth} px`] : [];
  for (const each of document.body.querySelectorAll("*")) {
    if (each.closest("svg, .hidden, .plot, select, [hidden], thead") || !each.checkVisibility()) continue;
    const style = getComputedStyle(each);
    if (style.clipPath !== "none") continue;
    const box = each.getBoundingClientRect();
    const outside = style.position === "fixed" && (box.left < 0 || box.right > innerWidth);
    const spills = each.clientWidth > 0 && each.scrollWidth > each.clientWidth + 1 &&
      (style.overflowX === "visible" || each.matches(".panel") ||
       (style.overflowX === "hidden" && style.textOverflow !== "ellipsis" && !each.matches("a.c")));
    if (outside || spills) found.push(`${each.scrollWidth} px in ${each.clientWidth} px: ${what(each)}`);
  }
  return found;
}"""
SETTLED = """() => {
  const plots = [...document.querySelectorAll(".plot .u-wrap")];
  const plans = document.querySelector("#plans");
  return document.fonts.status === "loaded" && !document.querySelector("[aria-busy=true], .htmx-request")
    && (!plans || plans.querySelector("h2") !== null)
    && plots.every((each) => each.offsetWidth <= each.closest(".plot").offsetWidth);
}"""
# An open page is updated every 1.5 s unless it is hidden; one that is inspected must not change meanwhile.
STOP_UPDATES = "Object.defineProperty(document, 'hidden', { value: true, configurable: true })"
RUN_AXE = """async ([part, rules]) => {
  const options = { resultTypes: ["violations"], ...(rules && { runOnly: { type: "rule", values: rules } }) };
  return (await axe.run(part, options)).violations;
}"""


@dataclass
class Witness:
    """Notes what a page complains about: console errors and warnings, exceptions, failed requests."""

    page: Page
    expected: re.Pattern[str] | None = None  # addresses that are requested although they do not exist
    complaints: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.page.on("console", self._note_message)
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on("response", self._note_response)

    def _note_message(self, message: ConsoleMessage) -> None:
        # A failed request is noted with its address when the response arrives.
        if message.type in ("error", "warning") and "Failed to load resource" not in message.text:
            self.complaints.append(f"{message.type}: {message.text}")

    def _note_response(self, response: Response) -> None:
        if response.status >= 400 and not (self.expected and self.expected.search(response.url)):
            self.complaints.append(f"{response.status}: {response.url}")


def wait_settled(page: Page) -> None:
    """Wait until fonts, charts and parts that are requested later are there."""
    page.evaluate(STOP_UPDATES)
    page.wait_for_function(SETTLED)


def overflows(page: Page) -> list[str]:
    """Elements that do not fit, also in the window."""
    found: list[str] = page.evaluate(OVERFLOWS)
    return found


def accessibility(page: Page, part: str = "html", rules: tuple[str, ...] | None = None) -> list[str]:
    """Serious and critical findings of axe-core in a part of the page, of all its rules or of some."""
    if not page.evaluate("typeof axe !== 'undefined'"):
        page.evaluate(AXE_SCRIPT)
    violations = page.evaluate(RUN_AXE, [part, list(rules) if rules else None])
    return [
        f"{each['id']} ({each['impact']}): {node['target']} {node['failureSummary']!r}"
        for each in violations
        if each["impact"] in SERIOUS
        for node in each["nodes"]
    ]
