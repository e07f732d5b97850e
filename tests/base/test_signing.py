"""Keys and signatures of requests."""

from __future__ import annotations

import subprocess
import sys

import pytest

from monitor.base.signing import MAX_PUBLIC_KEYS, RequestSignature, RequestSigner, RequestVerifier, generate_keys

PAIR, OTHER = generate_keys(), generate_keys()
SIGNER = RequestSigner(PAIR.private)


def signature(node: str = "gpu-01") -> RequestSignature:
    found = RequestSignature.parse(SIGNER.sign(node, "POST", "/v1/actions", b"{}", 1_700_000_000.9))
    assert found is not None
    return found


@pytest.mark.parametrize("node", ["gpu-01", "节点 1", "a,b=c\nd", "%41"])
def test_what_is_signed_is_verified(node: str) -> None:
    found = signature(node)
    assert (found.node, found.at, found.key_id) == (node, "1700000000", SIGNER.key_id)
    assert RequestVerifier(node, PAIR.public).verify(found, "POST", "/v1/actions", b"{}")


@pytest.mark.parametrize(
    ("name", "node", "method", "path", "body"),
    [
        ("another node", "gpu-02", "POST", "/v1/actions", b"{}"),
        ("another method", "gpu-01", "GET", "/v1/actions", b"{}"),
        ("another path", "gpu-01", "POST", "/v1/actions/a/stop", b"{}"),
        ("another body", "gpu-01", "POST", "/v1/actions", b"{ }"),
        ("fields that are moved", "gpu-01\nPOST", "", "/v1/actions", b"{}"),
    ],
)
def test_a_signature_fits_one_request(name: str, node: str, method: str, path: str, body: bytes) -> None:
    assert not RequestVerifier(node, PAIR.public).verify(signature(), method, path, body)


def test_any_of_several_keys_may_have_signed() -> None:
    verifier = RequestVerifier("gpu-01", f"# old\n{OTHER.public}\n\n# new\n  {PAIR.public}  \n")
    assert verifier.verify(signature(), "POST", "/v1/actions", b"{}")
    assert not RequestVerifier("gpu-01", OTHER.public).verify(signature(), "POST", "/v1/actions", b"{}")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "holds 0 public keys"),
        ("# none\n", "holds 0 public keys"),
        ("\n".join([PAIR.public] * (MAX_PUBLIC_KEYS + 1)), f"write 1 to {MAX_PUBLIC_KEYS}"),
        ("an-old-shared-token", "holds no public key; create a pair of keys with: gpuwarden keys"),
        (PAIR.public[:-4], "holds no public key"),
        (PAIR.private, "holds the private key where the public key belongs"),
    ],
    ids=["empty", "only a comment", "too many", "a token", "cut", "private"],  # keys differ in each process
)
def test_what_is_no_file_of_public_keys(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=message) as refused:
        RequestVerifier("gpu-01", text)
    assert PAIR.private not in str(refused.value)


@pytest.mark.parametrize(
    ("text", "message"),
    [("an-old-shared-token", "holds no private key"), (PAIR.public, "holds the public key where the private")],
    ids=["a token", "public"],
)
def test_what_is_no_private_key(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=message) as refused:
        RequestSigner(text)
    assert text not in str(refused.value)


def test_no_secret_in_a_repr_and_no_two_pairs_alike() -> None:
    assert PAIR.private not in repr(PAIR) + repr(SIGNER)
    assert PAIR.private != OTHER.private


def test_the_library_is_loaded_with_the_first_signature() -> None:
    code = (
        "import sys\nfrom monitor.base.signing import RequestVerifier\n"
        f"RequestVerifier('gpu-01', {PAIR.public!r})\nprint('nacl' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "False\n"
