# SPDX-License-Identifier: MIT
"""Mounts visible only to this process and its children: a directory of its own, a small disk."""
import ctypes
import subprocess

from weft_e2e import absent

NEW_MOUNTS = 0x20000  # CLONE_NEWNS


def own_mounts():
    """Makes own mounts; skips the test if that is not permitted."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(NEW_MOUNTS) or subprocess.run(["mount", "--make-rprivate", "/"], check=False).returncode:
        absent("no mounts of its own can be made for a process (root may)")


def mount_memory(path, size):
    """Mounts an empty file system of that size."""
    if subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "none", path], check=False).returncode:
        absent(f"nothing can be mounted on {path}")


def resize_memory(path, size):
    subprocess.run(["mount", "-o", f"remount,size={size}", path], check=True)


def unmount(path):
    subprocess.run(["umount", "-l", path], check=True)
