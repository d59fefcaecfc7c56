"""Process of a Sail server: reachable only by its owner, bounded in memory, never outliving its parent.

Sail listens at a port without authentication. So it gets an empty network of its own, and is reached through a socket
in a folder that only its owner may enter. Only `server.start_server` starts it. It imports no other module of ours, so
that it starts at once.
"""

from __future__ import annotations

import asyncio
import ctypes
import fcntl
import os
import resource
import shutil
import socket
import struct
import sys
import tempfile
from contextlib import suppress
from pathlib import Path

_NEW_USER, _NEW_NETWORK = 0x10000000, 0x40000000
_SET_FLAGS, _UP_AND_RUNNING = 0x8914, 0x41
_PIECE = 1 << 20
_LOOKS_EVERY_S = 0.2


def serve(limit_bytes: int) -> None:
    """Serve until standard input ends, which happens when the parent process ends in any way.

    Args:
        limit_bytes: memory beyond which the process ends. The system's own limit also counts released address space,
            and is twice as high: it is for growth that is too fast.
    """
    _into_own_network()
    resource.setrlimit(resource.RLIMIT_DATA, (2 * limit_bytes, 2 * limit_bytes))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    from pysail.spark import SparkConnectServer

    server = SparkConnectServer("127.0.0.1", 0)
    server.start(background=True)
    assert server.listening_address is not None
    folder = tempfile.mkdtemp(prefix="sail-")
    try:
        asyncio.run(_relay(Path(folder) / "socket", server.listening_address[1], limit_bytes))
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        os._exit(0)  # even in the middle of work: no process waits for the answer


def _into_own_network() -> None:
    """Move into a network namespace with only loopback; without the right to do so, in a user namespace."""
    system, user, group = ctypes.CDLL(None, use_errno=True), os.getuid(), os.getgid()
    if system.unshare(_NEW_NETWORK) != 0:
        if system.unshare(_NEW_USER | _NEW_NETWORK) != 0:
            raise OSError(ctypes.get_errno(), "this machine gives no process a network of its own")
        Path("/proc/self/setgroups").write_text("deny")
        Path("/proc/self/uid_map").write_text(f"{user} {user} 1")
        Path("/proc/self/gid_map").write_text(f"{group} {group} 1")
    with socket.socket() as any_socket:
        fcntl.ioctl(any_socket, _SET_FLAGS, struct.pack("16sh22x", b"lo", _UP_AND_RUNNING))


async def _relay(path: Path, port: int, limit_bytes: int) -> None:
    """Relay between a socket in the file system and the server, until standard input ends."""
    ended, watch = asyncio.Event(), asyncio.create_task(_end_beyond(limit_bytes))
    asyncio.get_running_loop().add_reader(0, lambda: ended.set() if not os.read(0, _PIECE) else None)

    async def passed_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        answers, questions = await asyncio.open_connection("127.0.0.1", port)
        await asyncio.gather(_pump(reader, questions), _pump(answers, writer))

    async with await asyncio.start_unix_server(passed_on, path):
        sys.stdout.write(f"{path}\n")
        sys.stdout.flush()
        await ended.wait()
        watch.cancel()
        shutil.rmtree(path.parent, ignore_errors=True)
        os._exit(0)


async def _end_beyond(limit_bytes: int) -> None:
    """End the process once it has more memory, like a failing allocation."""
    page_bytes = os.sysconf("SC_PAGE_SIZE")
    while True:
        _, resident, shared, *_ = map(int, Path("/proc/self/statm").read_text().split())
        if (resident - shared) * page_bytes > limit_bytes:
            sys.stderr.write(f"It had more than {limit_bytes} bytes of memory.\n")
            sys.stderr.flush()
            os.abort()
        await asyncio.sleep(_LOOKS_EVERY_S)


async def _pump(source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
    with suppress(OSError):
        while piece := await source.read(_PIECE):
            target.write(piece)
            await target.drain()
    target.close()


if __name__ == "__main__":
    serve(int(sys.argv[1]))
