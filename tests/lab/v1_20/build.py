"""Builds Kubernetes 1.20.2 from Debian's source package, once.

All inputs come from the source package and Debian. Intermediate results stay in the cache until the build is complete,
so an interrupted build resumes; the programs appear in `bin` atomically at the end.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path

from tests.lab.building import is_complete, publish, run_logged
from tests.lab.errors import LabError
from tests.lab.lock import locked
from tests.lab.packages import APT_LIMIT, install
from tests.lab.programs import KUBERNETES
from tests.lab.v1_20.deb_src import APT, apt_options, write_sources

VERSION = "1.20.2"
GO = Path("/usr/lib/go-1.19")
NEWER_REFLECT2 = Path("/usr/share/gocode/src/github.com/modern-go/reflect2")
VENDORED_REFLECT2 = Path("vendor/github.com/modern-go/reflect2")
MAKE_LIMIT = 3600.0
# Build dependencies of Kubernetes.
PACKAGES = (
    "dpkg-dev",
    "gcc",
    "golang-1.19-go",
    "golang-github-modern-go-reflect2-dev",
    "jq",
    "libc6-dev",
    "make",
    "rsync",
)
GIT_VERSION = f"""\
KUBE_GIT_COMMIT='faecb196815e248d3ecfb03c680a4507229c2a56'
KUBE_GIT_TREE_STATE='archive'
KUBE_GIT_VERSION='v{VERSION}'
KUBE_GIT_MAJOR='1'
KUBE_GIT_MINOR='20'
"""


def build_kubernetes(cache: Path, say: Callable[[str], None]) -> Path:
    """Directory of the Kubernetes programs, which are built first if necessary.

    LabError if a package is missing and cannot be installed, or a step fails.
    """
    programs = cache / "bin"
    if is_complete(KUBERNETES, programs):
        return programs
    say(f"building Kubernetes {VERSION} in {cache}")
    with locked(cache / "build.lock", limit=MAKE_LIMIT):
        if is_complete(KUBERNETES, programs):  # another process built them meanwhile
            return programs
        install(PACKAGES)
        work = cache / "build"
        tree = fetch_source(work, say)
        prepare_source(tree, NEWER_REFLECT2)
        say(f"compiling, about 10 minutes on two cores; output in {work / 'make.log'}")
        compile_programs(tree, work)
        publish(KUBERNETES, tree / "_output" / "bin", programs)
        shutil.rmtree(work)
    return programs


def fetch_source(work: Path, say: Callable[[str], None]) -> Path:
    """Directory of the unpacked source, downloaded if necessary; LabError if apt does not offer it."""
    tree = work / "kubernetes"
    if tree.exists():  # renamed to this only when complete
        return tree
    say("downloading the source package")
    apt, unpacking = work / "apt", work / "unpacking"
    shutil.rmtree(unpacking, ignore_errors=True)
    unpacking.mkdir(parents=True)
    write_sources(APT, apt)
    options = apt_options(apt)
    log = work / "fetch.log"
    run_logged(["apt-get", *options, "--quiet", "update"], log, APT_LIMIT, cwd=unpacking)
    known = subprocess.run(
        ["apt-cache", *options, "showsrc", "kubernetes"], capture_output=True, text=True, check=False, timeout=120
    )
    version = pick_version(known.stdout)
    source = ["apt-get", *options, "--quiet", "--only-source", "source", f"kubernetes={version}"]
    run_logged(source, log, APT_LIMIT, cwd=unpacking)
    next(path for path in unpacking.glob("kubernetes-*") if path.is_dir()).rename(tree)
    return tree


def pick_version(records: str) -> str:
    """Version to build, from the output of `apt-cache showsrc`; LabError if it is not offered."""
    versions = [line.partition(":")[2].strip() for line in records.splitlines() if line.startswith("Version:")]
    for version in versions:
        if VERSION in version:
            return version
    offered = ", ".join(versions) or "none at all"
    raise LabError(
        f"Kubernetes {VERSION} is needed, which Debian 12 has; the sources of this system offer {offered}. "
        "Give the programs by KUBE_BIN_DIR (1.20 to 1.23: later ones cannot use the Docker engine)"
    )


def prepare_source(tree: Path, newer_reflect2: Path) -> None:
    """Patch the source for Go 1.19; idempotent."""
    # The bundled reflect2 crashes when built by Go 1.18 or later: the API server would crash on a long list.
    old = tree / VENDORED_REFLECT2
    for path in old.glob("*.go"):
        path.unlink()
    for path in newer_reflect2.glob("*.go"):
        if not path.name.endswith("_test.go"):
            shutil.copy2(path, old)
    link = tree / ".go" / "src" / "k8s.io" / "kubernetes"
    link.parent.mkdir(parents=True, exist_ok=True)
    if not link.is_symlink():
        link.symlink_to("../../..")
    (tree / ".git-version").write_text(GIT_VERSION)


def compile_programs(tree: Path, work: Path) -> None:
    """Build the programs into `_output/bin`, reusing compiled packages."""
    environment = build_environment(tree, os.environ)
    what = " ".join(f"cmd/{name}" for name in KUBERNETES)
    run_logged(["make", f"WHAT={what}"], work / "make.log", MAKE_LIMIT, cwd=tree, environment=environment)


def build_environment(tree: Path, inherited: Mapping[str, str]) -> dict[str, str]:
    """Environment of the Kubernetes build: Debian's Go 1.19 alone, without the settings of another toolchain.

    `inherited` may carry the settings of a newer Go (flags, experiments, a workspace, a toolchain to download), and so
    may the file that GOENV names: none of them reaches the build.
    """
    own = {name: value for name, value in inherited.items() if not name.startswith(("GO", "CGO_", "KUBE_"))}
    return own | {
        "CGO_ENABLED": "0",
        "GOENV": "off",
        "GOPATH": str(tree / ".go"),
        "GOPROXY": "off",
        "GOROOT": str(GO),
        "GOSUMDB": "off",
        "KUBE_GIT_VERSION_FILE": str(tree / ".git-version"),
        "PATH": f"{GO / 'bin'}{os.pathsep}{inherited.get('PATH', os.defpath)}",
    }
