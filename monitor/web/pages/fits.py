"""Would a job fit: a form, and the answer. It only reads."""

from __future__ import annotations

from starlette.responses import Response

from monitor.present.explanation import ExplanationParts, explanation_parts
from monitor.queries.fits import FIELDS, MAX_GPUS, TOLERATE, FitsAnswer, parse_request
from monitor.web.pages.render import PageRequest


def show(page: PageRequest) -> Response:
    """The form with the answer, or with what is wrong with the request."""
    asked = {name: page.query(name) for name in FIELDS}
    asked[TOLERATE] = page.query(TOLERATE)
    chain, error, status = None, None, 200
    if any(asked.values()):
        try:
            wanted = parse_request({name: asked[name] for name in FIELDS}, asked[TOLERATE].split(","))
            chain = parts_of(page.deps.cluster.fits(wanted, page.lang))
        except ValueError as problem:
            error, status = str(problem), 400
    view = page.deps.cluster.view()
    section = page.section("answer", "fits", polite=True, chain=chain, error=error)
    return page.respond(
        "fits.html", page.t("fits.title"), section, status=status, asked=asked, most=MAX_GPUS,
        models=sorted({each.model for each in view.free}), queues=sorted({queue.name for queue in view.queues}),
    )  # fmt: skip


def parts_of(answer: FitsAnswer) -> ExplanationParts:
    """The parts of an answer."""
    return explanation_parts("", ("", *answer.lines), well=answer.fits)
