"""Wording of image pull failures by speaker. Fragments are lower case; the first match wins."""

from __future__ import annotations

from monitor.explain.error_chain.causes import PullFailureCause as P
from monitor.explain.error_chain.wording import wording

# Sentences that only one program says, whatever precedes them.
UNMISTAKABLE = wording(
    (P.KUBELET_LIMIT, ("pull qps exceeded",)),
    (P.NEVER_PULL, ("pull policy of never",)),
    (
        P.POLICY,
        (
            "source image rejected", "signaturevalidationfailed", "projectpolicyviolation", "is rejected by policy",
            "due to configured policy", "is not signed", "no valid trust data", "remote trust data does not exist",
            "vulnerability severity", "prevent vulnerable", "blocking policy", "is blocked in _",
            "blocked by xray", "download blocked",
            "blocked by policy", "image policy", "signature was required", "quarantined", "violates policy",
            "denied by policy", "signature verification failed", "no matching signatures", "blocked pull of",
            "signature validation failed", "checking signature", "verifying signatures", "invalid gpg signature",
        ),
    ),
    (
        P.BAD_NAME,
        (
            "couldn't parse image", "invalid reference format", "invalid image name", "must be lowercase",
            "did not resolve to an alias", "no registries configured", "unqualified-search registries",
            "invalid repository name", "invalid tag format", "repository name must", "name invalid", "tag invalid",
            "invalidimagename", "short-name resolution enforced", "short name mode is enforcing",
            "cannot parse reference",
            "failed to parse reference", "could not parse reference", "parse image reference",
            "invalid checksum digest format", "invalid digest format", "unsupported digest algorithm",
        ),
    ),
    (
        P.WRONG_ARCHITECTURE,
        (
            "no match for platform", "no matching manifest for", "no image found in manifest list for",
            "no supported platform found",
            "no image found in image index for", "cannot be used on this platform",
            "does not match the specified platform",
            "no manifest found for platform", "no suitable image found for", "does not match the expected platform",
        ),
    ),
    (
        P.CREDENTIAL_HELPER,
        (
            "docker-credential-", "error getting credentials", "credential helper", "credential provider plugin",
            "credential-provider", "error loading credential", "failed to execute credential",
            "error executing credential",
        ),
    ),
    (
        P.OLD_FORMAT,
        (
            "is no longer supported since", "manifest.v1+prettyjws not supported", "manifest.v1+json not supported",
            "schema 1", "schema1", "schemaversion 1", "docker image format v1",
            "distribution.manifest.v1+prettyjws", "unsupported schema version", "v1 repository request",
            "invalid schema version 1", "schema version 1",
        ),
    ),
    (P.TLS, ("failed to load x509 key pair", "unable to load ca cert", "unable to read ca cert")),
    (P.DAMAGED_LAYER, ("digest did not match", "unexpected commit", "failed size validation")),
    (P.NODE_STORE, ("image not known", "layer not known")),
    (P.REGISTRY_ERROR, ("media type text/html", "media type text/plain", "unknown blob", "blob unknown")),
    (
        P.BAD_IMAGE,
        (
            "accept header does not support", "unsupported media type",
            "mismatched image rootfs and manifest layers", "unexpected media type", "wrong diff id",
            "number of layers and diffids don't match", "manifest invalid", "invalid manifest", "unrecognized manifest",
            "unsupported manifest", "is not a container image", "not an image", "invalid tar header",
            "layers from manifest don't match image configuration", "unsupported layer",
            "unsupported compression", "invalid image config", "unsupported image", "diffids",
            "encountered unknown type", "no processor for media-type", "unsupported mimetype",
            "mediatype in manifest should be", "empty manifest",
        ),
    ),
)  # fmt: skip

# What fails while a layer is unpacked or stored on the node. Decides on the innermost statement.
STORE = wording(
    (P.DISK_FULL, ("no space left on device", "disk quota exceeded", "not enough space", "no inodes")),
    (P.DISK_FULL, ("free data blocks",)),
    (
        P.NODE_DISK,
        (
            "input/output error", "read-only file system", "structure needs cleaning", "remote i/o error",
        ),
    ),
    (
        P.CORRUPT_LAYER,
        (
            "gzip", "unpigz", "pigz", "zlib", "flate", "zstd", "crc32", "corrupt input", "corrupted data",
            "invalid checksum", "unexpected eof", "data is corrupt",
            "incomplete deflate", "invalid input: magic", "xz:", "bzip2", "lz4", "magic number mismatch", "crc check",
        ),
    ),
    (
        P.DAMAGED_LAYER,
        (
            "unexpected commit digest", "failed size validation", "verification failed", "digest mismatch",
            "unexpected digest", "unexpected size", "size does not match", "checksum does not match",
            "digest does not match", "digests don't match",
            "digest did not match",
            "invalid digest", "commit failed: unexpected", "digest invalid",
        ),
    ),
    (
        P.BAD_IMAGE,
        (
            "archive/tar", "invalid tar header", "operation not permitted", "invalid path", "breakout",
            "file name too long", "unhandled tar header", "duplicates of file", "insufficient uids or gids",
            "invalid argument", "unsupported tar", "missing whiteout", "no such device or address", "unrecognized tar",
        ),
    ),
    (
        P.NODE_STORE,
        (
            "not found", "does not exist", "no such file", "directory not empty", "file exists", "already exists",
            "not a directory", "layer not known", "image not known", "missing parent", "locked", "is in use",
            "parent snapshot", "too many levels", "max depth exceeded", "not empty",
            "device or resource busy",
        ),
    ),
)  # fmt: skip
# What fails while the node mounts a layer in order to unpack it. The image has no part in it.
STORE_MOUNT = wording(
    (P.DISK_FULL, ("no space left on device", "disk quota exceeded")),
    (P.NODE_DISK, ("input/output error", "read-only file system", "structure needs cleaning")),
    (P.NODE_STORE, ("no such file or directory", "device or resource busy", "too many levels")),
)

RATE_LIMIT = ("toomanyrequests", "too many requests", "rate limit")
# Codes of the registry API, which Docker, containers/image and containerd print as words.
REGISTRY = wording(
    (P.RATE_LIMITED, (*RATE_LIMIT, "rate exceeded", "pull limit")),
    (P.UNAUTHORIZED, ("pull access denied", "insufficient_scope", "may require authorization", "no pull access")),
    (
        P.NOT_FOUND,
        (
            "manifest unknown", "name unknown", "manifest_unknown", "name_unknown", "repository unknown",
            "was deleted or has expired", "repository does not exist", "tag does not exist", "tag not found",
            "repository not found", "image not found", "artifact not found", "requested image not found",
            "failed to find image", "does not exist in the registry", "manifest not found",
            "not found in repository",
        ),
    ),
    (
        P.UNAUTHORIZED,
        (
            "unauthorized", "authentication required", "authentication is required",
            "no basic auth credentials", "pull access denied",
            "insufficient_scope", "insufficient scope", "access to the resource is denied", "authorization failed",
            ": denied: ", "access denied", "is denied", "denied by", "requested access", "forbidden", "not authorized",
            "incorrect username or password", "invalid username/password",
            "unable to retrieve auth token", "invalid credentials", "bad credentials", "authrequired",
            "no credentials", "unauthenticated", "accessdenied", "not accessible with", "docker login", "invalid_grant",
            "unable to retrieve some image pull secrets",
        ),
    ),
    (
        P.REGISTRY_ERROR,
        (
            "internal server error", "bad gateway", "service unavailable", "gateway time", "bad request",
            "invalid character '<'", "error parsing http", "unknown: unknown error", "origin error",
            "looking for beginning of value",
        ),
    ),
)  # fmt: skip

# Limits that are answered with the status of an error of the server.
ACCOUNT_LIMIT = ("over the account limit", "account is being throttled", "serverbusy")

# The connection itself, as Go's net, crypto/tls and net/http word it.
TRANSPORT = wording(
    (
        P.PLAIN_HTTP,
        ("server gave http response to https client", "first record does not look like a tls handshake"),
    ),
    (P.TIMEOUT, ("tls handshake timeout",)),
    (P.CONNECTION_BROKEN, ("bad record mac",)),
    (P.TLS, ("x509", "certificate", "tls", "ssl", "handshake failure", "remote error")),
    (
        P.DNS,
        (
            "no such host", "server misbehaving", "name resolution", "name or service not known",
            "cannot unmarshal dns",
            "no address associated with hostname", "no answer from dns", "no suitable address",
        ),
    ),
    (P.CONNECTION_REFUSED, ("connection refused", "actively refused")),
    (
        P.TIMEOUT,
        (
            "i/o timeout", "client.timeout", "awaiting response headers", "awaiting headers", "connection timed out",
            "cannot assign requested address",
            "operation timed out", "no route to host", "network is unreachable", "host is down", "host is unreachable",
            "request canceled while waiting for connection", "timed out",
        ),
    ),
    (
        P.CONNECTION_BROKEN,
        (
            "connection reset", "unexpected eof", "broken pipe", "stream error", "goaway", "internal_error",
            "closed network connection", "closed idle connection", "server closed", "client connection lost",
            "connection aborted", "short read", "protocol_error", "connection closed", "transport connection broken",
            "http2",
        ),
    ),
)  # fmt: skip
CANCELLED = (
    "context deadline exceeded",
    "context canceled",
    "deadlineexceeded",
    "no progress",
    "operation timeout",
    "request canceled",
)
EXPIRED = (
    "token has expired", "token is expired", "token expired", "expiredtoken", "expired token",
    "credentials have expired",
    "credentials expired", "password has expired", "session has expired", "keys are expired", "account has expired",
    "account is expired", "credential has expired", "has expired. reauthenticate", "request is expired", "jwt expired",
    "robot account expired", "secret is expired", "secret has expired",
)  # fmt: skip
