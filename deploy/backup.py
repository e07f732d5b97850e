"""Back up the state directory of a daemon while it runs, as an archive on standard output.

Databases are copied by SQLite's online backup, so each is complete and consistent; all other files are copied as they
are. Needs nothing but Python, so it also runs in the container:

    python3 deploy/backup.py /var/lib/gpuwarden > state.tar
    kubectl -n gpuwarden exec -i deployment/gpuwarden -- python3 - /var/lib/gpuwarden < deploy/backup.py > state.tar
"""

from __future__ import annotations

import sqlite3
import sys
import tarfile
import tempfile
from contextlib import closing
from pathlib import Path

# Files beside a database that belong to its open connections, and what is valid for one process only.
LEFT_OUT = ("*.db-wal", "*.db-shm", "daemon.lock", "cli.token")


def back_up(state: Path, archive: tarfile.TarFile) -> None:
    """Write the files of a state directory to an archive. Raise OSError or sqlite3.Error."""
    for path in sorted(state.iterdir()):
        if any(path.match(pattern) for pattern in LEFT_OUT):
            continue
        if path.suffix != ".db":
            archive.add(path, path.name)
            continue
        with tempfile.TemporaryDirectory() as directory:  # one at a time: /tmp may be small
            copy = Path(directory) / path.name
            with closing(sqlite3.connect(path)) as source, closing(sqlite3.connect(copy)) as target:
                source.backup(target)
            copy.chmod(0o600)
            archive.add(copy, path.name)


def main() -> int:
    """Write the archive to standard output. Exit code 2 for wrong usage, 1 if a file cannot be read."""
    if len(sys.argv) != 2 or not Path(sys.argv[1]).is_dir():
        sys.stderr.write("backup: give the state directory, for example /var/lib/gpuwarden\n")
        return 2
    if sys.stdout.isatty():
        sys.stderr.write("backup: redirect the output to a file: ... > state.tar\n")
        return 2
    try:
        with tarfile.open(fileobj=sys.stdout.buffer, mode="w|") as archive:
            back_up(Path(sys.argv[1]), archive)
    except (OSError, sqlite3.Error) as error:
        sys.stderr.write(f"backup: {error}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
