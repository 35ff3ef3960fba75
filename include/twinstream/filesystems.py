"""Which kind of file system a path is on: what may be trusted (locks, modification times) depends on it."""

from __future__ import annotations

from pathlib import Path

MOUNTS = "/proc/mounts"
NETWORK = frozenset(
    [
        "nfs",
        "nfs4",
        "cifs",
        "smb3",
        "smbfs",
        "9p",
        "afs",
        "ceph",
        "glusterfs",
        "lustre",
        "beegfs",
        "gpfs",
        "fuse.sshfs",
        "fuse.s3fs",
        "fuse.gcsfuse",
        "fuse.glusterfs",
        "fuse.cephfs",
        "fuse.ceph-fuse",
        "fuse.rclone",
        "fuse.blobfuse2",
        "davfs",
        "fuse.davfs2",
    ]
)
"""Shared between hosts: locks on them cannot be relied on."""


def filesystem_of(path: Path, mounts: str | None = None) -> str:
    """The type of the file system that holds `path`; empty where that cannot be known."""
    try:
        lines = Path(mounts or MOUNTS).read_text(errors="surrogateescape").splitlines()
    except OSError:
        return ""
    best, kind = "", ""
    real = str(path.resolve())
    for line in lines:
        parts = line.split(" ")
        if len(parts) < 3:
            continue
        point = _unescaped(parts[1])
        if (real == point or real.startswith(point.rstrip("/") + "/")) and len(point) >= len(best):
            best, kind = point, parts[2]
    return kind


def _unescaped(point: str) -> str:
    """The kernel writes blanks, tabs, line ends and backslashes in octal."""
    for octal, letter in (("\\040", " "), ("\\011", "\t"), ("\\012", "\n"), ("\\134", "\\")):
        point = point.replace(octal, letter)
    return point
