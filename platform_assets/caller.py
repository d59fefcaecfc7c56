"""Name the operating system user and the machine of this process, beside the name that anybody can type."""

from __future__ import annotations

import os
import pwd
import socket


def own_user() -> str:
    """Return the user that the process belongs to, whatever its environment says; a number where that has no name."""
    try:
        return pwd.getpwuid(os.getuid()).pw_name
    except KeyError:  # as in a container
        return f"uid {os.getuid()}"


def own_host() -> str:
    """Return the name of the machine, or of the container."""
    return socket.gethostname()
