# SPDX-License-Identifier: Apache-2.0
"""Namespaces of a cell's own: its processes, its loopback, its /dev/shm. Whatever a peer starts, forks or leaves ends with the cell's first
process, and nobody outside can reach what listens inside."""

import ctypes
import fcntl
import os
import signal
import socket
import struct

UNSHARE = ["unshare", "--mount", "--pid", "--net", "--ipc", "--fork", "--kill-child", "--mount-proc"]
SIOCGIFFLAGS, SIOCSIFFLAGS, IFF_UP = 0x8913, 0x8914, 1


def command(program):
    """`program` as the first process of new namespaces; without privileges those of a new user namespace."""
    return UNSHARE + ([] if os.geteuid() == 0 else ["--map-root-user"]) + program


def end_with_parent():
    """For preexec_fn of such a command: unshare ends with whoever has started it, and everybody inside with unshare."""
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG; unshare ignores gentler ones


def settle():
    """What that first process does first: loopback goes up, and /dev/shm is empty and private."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as file:
        request = struct.pack("16sh14x", b"lo", 0)
        flags = struct.unpack("16sh14x", fcntl.ioctl(file, SIOCGIFFLAGS, request))[1]
        fcntl.ioctl(file, SIOCSIFFLAGS, struct.pack("16sh14x", b"lo", flags | IFF_UP))
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.mount(b"shm", b"/dev/shm", b"tmpfs", 0, None) < 0:
        raise OSError(ctypes.get_errno(), "cannot mount /dev/shm")
