"""The process of a Sail server: on a free port of this machine, within its memory, and never longer than its parent.

Started by `server.start_server` and by nobody else. It imports nothing of ours, so that it is there in a moment.
"""

from __future__ import annotations

import os
import resource
import sys


def serve(limit_bytes: int) -> None:
    """Serve until standard input ends, which it does with whoever started this, however that ends.

    Args:
        limit_bytes: of memory that the process can have; an allocation beyond it ends the process.
    """
    resource.setrlimit(resource.RLIMIT_DATA, (limit_bytes, limit_bytes))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    from pysail.spark import SparkConnectServer

    server = SparkConnectServer("127.0.0.1", 0)
    server.start(background=True)
    assert server.listening_address is not None
    sys.stdout.write(f"{server.listening_address[1]}\n")
    sys.stdout.flush()
    sys.stdin.buffer.read()
    os._exit(0)  # whatever it is at: nobody waits for the answer


if __name__ == "__main__":
    serve(int(sys.argv[1]))
