"""Secrets in other programs' text: none is left, and the rest stays readable."""

from __future__ import annotations

import time

import pytest

from monitor.base.masking import mask_secrets

SECRET = "s3cr3tS3CR3Ts3cr3t00"
HIDDEN = [
    f"export HF_TOKEN=hf_{SECRET}",
    f"GET https://user:{SECRET}@hub.example.com/x",
    f"https://user:{SECRET}/with/slash@hub.example.com/x",
    f"https://store.example.com/shard.tar?X-Amz-Signature={SECRET}&x=1",
    f"Authorization: Bearer {SECRET}",
    f"authorization: Basic {SECRET}==",
    f"password={SECRET}",
    f'{{"password": "{SECRET}"}}',
    f"{{'api_key': '{SECRET}'}}",
    f"passwd: {SECRET}",
    f"AWS_SECRET_ACCESS_KEY={SECRET}/+x",
    f"aws_access_key_id = AKIA{SECRET.upper()}",
    f"git clone failed for ghp_{SECRET}",
    f"github_pat_{SECRET}",
    f"glpat-{SECRET}",
    f"openai key sk-{SECRET}",
    f"xoxb-{SECRET}",
    f"jwt eyJhbGciOi.{SECRET}.{SECRET}",
    f"Command '['python', 'train.py', '--hf-token', '{SECRET}']' returned non-zero exit status 1.",
    f"wandb: Appending key {SECRET} for api.example.com",
    f"secret {SECRET}",
    f"token '{SECRET}' is invalid",
    f"postgresql://admin:{SECRET}@db:5432/mlflow",
    f"MLFLOW_TRACKING_TOKEN={SECRET} set",
    f"client-key: {SECRET}",
    f"sig={SECRET}",
    f"-----BEGIN PRIVATE KEY----- {SECRET}",
    f"Cookie: session={SECRET}",
]  # fmt: skip


@pytest.mark.parametrize("text", HIDDEN)
def test_a_secret_is_masked(text: str) -> None:
    masked = mask_secrets(text)
    assert SECRET.lower() not in masked.lower()
    assert "***" in masked


def test_keys_in_hexadecimal_are_masked() -> None:
    assert mask_secrets(f"uploaded by {'0a' * 20}") == "uploaded by ***"


KEPT = [
    "KeyError: 'input_ids'",
    "FileNotFoundError: [Errno 2] No such file or directory: '/data/imagenet/train/n01440764'",
    "undefined symbol: _ZN2at4_ops5zeros4callEN3c108ArrayRefINS2_6SymIntEEENS2_8optionalINS2_10ScalarTypeEEE",
    "requests.exceptions.HTTPError: 502 Server Error: Bad Gateway for url: https://models.example.com/api/v1/artifacts/llm-7b",
    "ValueError: token must be a string",
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 79.10 GiB",
    "omegaconf.errors.ConfigAttributeError: Key 'learning_rate' is not in struct",
    "wandb.errors.errors.AuthenticationError: API key verification failed for host https://api.example.com.",
]  # fmt: skip


@pytest.mark.parametrize("text", KEPT)
def test_other_text_stays(text: str) -> None:
    assert mask_secrets(text) == text


@pytest.mark.parametrize(
    "piece",
    ["a", "://", "token", "--key", "key ", "token=", "eya.", "://a:", "0a", "https://a", "bearer ", "-----BEGIN "],
)
def test_linear_time(piece: str) -> None:
    started = time.process_time()
    mask_secrets((piece * 20_000)[:20_000])
    assert time.process_time() - started < 1.0
