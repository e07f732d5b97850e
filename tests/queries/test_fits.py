"""Would a job fit: the question from words that users type."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from monitor.explain.fits.answer import would_fit
from monitor.explain.fits.model import FitsRequest
from monitor.facts.facts_index import make_cluster_facts
from monitor.queries.fits import FIELDS, MAX_GPUS, MAX_TOLERATIONS, localize_fits, parse_request
from tests.explain.builders import NOW, holding, node

GIB = 1024**3


@pytest.mark.parametrize(
    ("fields", "tolerations", "request_"),
    [
        ({"gpus": "16"}, (), FitsRequest(gpus=16)),
        ({"gpus": " 16 ", "per_node": "8", "model": ""}, ("",), FitsRequest(gpus=16, per_node=8)),
        (
            {"gpus": "1", "cpu": "500m", "memory": "64Gi"},
            (),
            FitsRequest(gpus=1, cpu_millicores=500, memory_bytes=64 * GIB),
        ),
        (
            {"gpus": "1", "cpu": "0.1", "memory": "100GB"},
            (),
            FitsRequest(gpus=1, cpu_millicores=100, memory_bytes=10**11),
        ),
        ({"gpus": "1", "cpu": "0.0001"}, (), FitsRequest(gpus=1, cpu_millicores=1)),
        (
            {"gpus": "7", "resource": "nvidia.com/mig-1g.10gb", "queue": "nlp", "namespace": "team-a"},
            ("a=b:NoSchedule", "nvidia.com/gpu", "x:NoExecute"),
            FitsRequest(
                gpus=7,
                resource="nvidia.com/mig-1g.10gb",
                queue="nlp",
                namespace="team-a",
                tolerations=("a=b:NoSchedule", "nvidia.com/gpu", "x:NoExecute"),
            ),
        ),
        ({"gpus": "8", "model": "A100 80GB"}, (), FitsRequest(gpus=8, model="A100 80GB")),
    ],
)
def test_requests(fields: dict[str, str], tolerations: tuple[str, ...], request_: FitsRequest) -> None:
    assert parse_request(fields, tolerations) == request_


@pytest.mark.parametrize(
    ("fields", "tolerations", "error"),
    [
        ({}, (), "gpus is missing; write the number of GPUs of the job, for example 16"),
        ({"gpus": "0"}, (), f"gpus is a number from 1 to {MAX_GPUS}, not '0'"),
        ({"gpus": "-1"}, (), f"gpus is a number from 1 to {MAX_GPUS}, not '-1'"),
        ({"gpus": "1e3"}, (), "gpus is a number"),
        ({"gpus": "٣"}, (), "gpus is a number"),
        ({"gpus": "99999999"}, (), "gpus is a number"),
        ({"gpus": "10", "per_node": "4"}, (), "gpus (10) is not a multiple of per_node (4)"),
        ({"gpus": "8", "per_node": "16"}, (), "gpus (8) is not a multiple of per_node (16)"),
        ({"gpus": "8", "cpu": "many"}, (), "cpu is the cores of each pod"),
        ({"gpus": "8", "cpu": "-1"}, (), "cpu is the cores of each pod"),
        ({"gpus": "8", "cpu": "nan"}, (), "cpu is the cores of each pod"),
        ({"gpus": "8", "cpu": "1e9"}, (), "cpu is the cores of each pod"),
        ({"gpus": "8", "memory": "lots"}, (), "memory is that of each pod"),
        ({"gpus": "8", "memory": "0"}, (), "memory is that of each pod"),
        ({"gpus": "8", "memory": "9999PiB"}, (), "memory is that of each pod"),
        ({"gpus": "8", "model": "<script>"}, (), "model is a GPU model such as A100, not '<script>'"),
        ({"gpus": "8", "queue": "a b"}, (), "queue is the name of a queue"),
        ({"gpus": "8", "namespace": "../x"}, (), "namespace is the name of a namespace"),
        ({"gpus": "8", "resource": "cpu"}, (), "resource is a resource such as nvidia.com/mig-1g.10gb"),
        ({"gpus": "8"}, ("a=b:Never",), "tolerate is a taint such as dedicated=nlp:NoSchedule"),
        ({"gpus": "8"}, ("x",) * (MAX_TOLERATIONS + 1), f"tolerate can be given at most {MAX_TOLERATIONS} times"),
    ],
)
def test_what_is_wrong_is_said(fields: dict[str, str], tolerations: tuple[str, ...], error: str) -> None:
    with pytest.raises(ValueError, match=re.escape(error)):
        parse_request(fields, tolerations)


@given(st.dictionaries(st.sampled_from(FIELDS), st.text(max_size=300)), st.lists(st.text(max_size=300), max_size=20))
def test_any_text_is_a_request_or_a_short_error(fields: dict[str, str], tolerations: list[str]) -> None:
    assert len(_said(fields, tolerations)) < 400


def _said(fields: dict[str, str], tolerations: list[str]) -> str:
    try:
        return f"{parse_request(fields, tolerations).gpus}"
    except ValueError as error:
        return str(error)


# The examples of docs/fits.md and docs/zh/fits.md.
SPLIT_EN = """\
Does not fit as 2 x 8 GPUs, but it fits now if it is split differently.
  - As 4 x 4: gpu-02 (4), gpu-03 (4), gpu-01 (8).
  - As 1 x 8 + 2 x 4: gpu-01 (8), gpu-02 (4), gpu-03 (4).
"""
SPLIT_ZH = """\
按 2 x 8 张 GPU 放不下，但换一种拆法现在放得下。
  - 拆成 4 x 4：gpu-02 (4), gpu-03 (4), gpu-01 (8)。
  - 拆成 1 x 8 + 2 x 4：gpu-01 (8), gpu-02 (4), gpu-03 (4)。
"""


@pytest.mark.parametrize(("lang", "text"), [("en", SPLIT_EN), ("zh", SPLIT_ZH)])
def test_the_documented_example(lang: str, text: str) -> None:
    nodes = [node(f"gpu-0{number}") for number in (1, 2, 3)]
    pods = [holding("a", "gpu-02", 4), holding("b", "gpu-03", 4)]
    result = would_fit(FitsRequest(gpus=16, per_node=8), make_cluster_facts(nodes=nodes, pods=pods), NOW)
    assert "\n".join((*localize_fits(result, lang).lines, "")) == text
