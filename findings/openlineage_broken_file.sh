#!/usr/bin/env bash
# openlineage-python 1.54.0: with a settings file that cannot be read, events are printed to the log and count as sent.
#
# Expected: `OpenLineageClient()` raises if `openlineage.yml` is no valid YAML, as it does for an unknown transport type, or
# `emit` does, so that a caller who retries knows that nothing was delivered.
# Seen: the mistake is one line in the log. The client goes on with its default transport, the console's: `emit` returns,
# the server of the file gets nothing, and each event is printed by the logger `openlineage.client.transport.console`.
# For a user: after making a client compare `type(client.transport)` with the transport that you configured.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/python"
"$folder/python/bin/pip" install --quiet --disable-pip-version-check openlineage-python==1.54.0
cd "$folder"
env -u OPENLINEAGE_URL -u OPENLINEAGE_CONFIG "$folder/python/bin/python" - <<'PYTHON'
import logging
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread
from uuid import uuid4

from openlineage.client import OpenLineageClient
from openlineage.client.event_v2 import Job, Run, RunEvent, RunState

logging.basicConfig(level=logging.CRITICAL)
taken: list[str] = []


class Server(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        taken.append(self.path)
        self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(201)
        self.end_headers()

    def log_message(self, *args: object) -> None:
        pass


server = HTTPServer(("127.0.0.1", 0), Server)
Thread(target=server.serve_forever, daemon=True).start()
right = f"transport:\n  type: http\n  url: http://127.0.0.1:{server.server_port}\n"
seen = {}
for name, text in {"a right file": right, "a file with a tab": right.replace("  url", "\turl")}.items():
    Path("openlineage.yml").write_text(text)
    taken.clear()
    client = OpenLineageClient()
    client.emit(RunEvent(eventTime=datetime.now(UTC).isoformat(), run=Run(str(uuid4())), job=Job("shop", "daily"), eventType=RunState.COMPLETE, producer="urn:test"))
    seen[name] = type(client.transport).__name__, len(taken)
    print(f"{name}: {seen[name][0]}, events at the server: {seen[name][1]}, emit returned without an error")
assert seen == {"a right file": ("HttpTransport", 1), "a file with a tab": ("ConsoleTransport", 0)}, seen
PYTHON
