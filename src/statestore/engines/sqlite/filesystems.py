"""On which kind of file system a file lies: the write-ahead log needs shared memory, which no network has."""

from __future__ import annotations

import os
import re
from typing import Final

_NETWORK: Final = frozenset(
    (
        *("9p", "afpfs", "afs", "beegfs", "ceph", "cifs", "coda", "davfs", "glusterfs", "gpfs", "lustre", "ncpfs"),
        *("nfs", "nfs4", "ocfs2", "orangefs", "prl_fs", "smb2", "smb3", "smbfs", "vboxsf", "virtiofs", "vmhgfs"),
        *("fuse.cephfs", "fuse.davfs2", "fuse.glusterfs", "fuse.rclone", "fuse.s3fs", "fuse.sshfs"),
        "fuse.vmhgfs-fuse",
    )
)
_MOUNTS: Final = "/proc/self/mountinfo"


def is_on_network(path: str) -> bool:
    """Whether a file lies on a file system that several machines may share; ``False`` where that cannot be told."""
    try:
        with open(_MOUNTS, encoding="utf-8", errors="surrogateescape") as file:
            mounts = file.read()
    except OSError:
        return False
    return file_system_of(os.path.realpath(path), mounts) in _NETWORK


def file_system_of(path: str, mounts: str) -> str:
    """The kind of the file system that holds an absolute path, by the kernel's table of mounts."""
    best, kind = "", ""
    for line in mounts.split("\n"):
        before, dash, after = line.partition(" - ")
        fields = before.split(" ")
        if not dash or len(fields) < 5:
            continue
        point = re.sub(r"\\([0-7]{3})", lambda code: chr(int(code[1], 8)), fields[4])
        is_above = path == point or path.startswith(point.rstrip("/") + "/")
        if is_above and len(point) >= len(best):  # of two mounts on one point, the later one is on top
            best, kind = point, after.split(" ", 1)[0]
    return kind
