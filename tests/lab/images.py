"""The images that every lab has from the start."""

from __future__ import annotations

import io
import subprocess
import tarfile

from tests.support.image_archive import Image, archive

IMAGE = "local/bb:1"
PAUSE_IMAGE = "local/pause:1"
# PID 1 without a handler ignores SIGTERM, and the kubelet would wait 10 s per sandbox.
PAUSE = ("/bin/sh", "-c", "trap 'exit 0' TERM; sleep 1000000 & wait")


def lab_images(busybox: str) -> bytes:
    """Archive of the image of pods and that of their sandboxes."""
    content = root_file_system(busybox)
    return archive((Image(IMAGE, (content,), ()), Image(PAUSE_IMAGE, (content,), PAUSE)))


def root_file_system(busybox: str) -> bytes:
    """Tar archive of a static busybox under the names of all its applets."""
    listing = subprocess.run([busybox, "--list"], capture_output=True, text=True, check=True, timeout=60)
    content = io.BytesIO()
    with tarfile.open(fileobj=content, mode="w") as tar:
        for name in ("bin", "etc", "root", "tmp"):
            directory = tarfile.TarInfo(name)
            directory.type, directory.mode = tarfile.DIRTYPE, 0o777 if name == "tmp" else 0o755
            tar.addfile(directory)
        tar.add(busybox, "bin/busybox", filter=_owned_by_root)
        for applet in sorted({*listing.stdout.split()} - {"busybox"}):
            link = tarfile.TarInfo(f"bin/{applet}")
            link.type, link.linkname = tarfile.SYMTYPE, "busybox"
            tar.addfile(link)
    return content.getvalue()


def _owned_by_root(member: tarfile.TarInfo) -> tarfile.TarInfo:
    member.uid = member.gid = 0
    member.uname = member.gname = "root"
    member.type, member.mode = tarfile.REGTYPE, 0o755
    return member
