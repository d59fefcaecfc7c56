"""The process: Dagster's own command with all its options, whose app is behind the guard."""

from __future__ import annotations

import os
import sys
from typing import Any

import uvicorn
from dagster._core.workspace.context import IWorkspaceProcessContext
from dagster_webserver import cli
from dagster_webserver.app import create_app_from_workspace_process_context

from platform_assets.errors import PlatformError
from platform_assets.orchestration.webserver.guard import Access, Guard
from platform_assets.settings import Settings, load_settings


def main() -> None:
    """Serve Dagster's pages until a signal ends it."""
    try:
        settings = load_settings()
    except PlatformError as error:
        sys.exit(str(error))
    # What this process starts, a user's code among it, has no use for it.
    os.environ.pop("PLATFORM_UI_PASSWORD", None)
    _let_dagster_serve_behind_a_guard(settings)
    cli.main()  # type: ignore[no-untyped-call]


def _let_dagster_serve_behind_a_guard(settings: Settings) -> None:
    """Its command has no place for a middleware, so the function is replaced that serves once all options are read."""

    def serve(
        context: IWorkspaceProcessContext[Any],
        host: str,
        port: int,
        path_prefix: str,
        log_level: str,
        live_data_poll_rate: int | None = None,
    ) -> None:
        secret = settings.ui_password
        named = (settings.ui_url, *settings.ui_origins)
        access = Access.at(port, named, secret.get_secret_value() if secret else None)
        app = create_app_from_workspace_process_context(
            context, path_prefix, live_data_poll_rate, lifespan=cli._lifespan
        )
        # One process, also where WEB_CONCURRENCY says something else for other servers: it could not begin.
        uvicorn.run(Guard(app, access), host=host, port=port, log_level=log_level, workers=1, proxy_headers=False)

    cli.host_dagster_ui_with_workspace_process_context = serve  # type: ignore[assignment]
    # A Dagster that no longer called it would serve without a guard. It can serve nothing.
    del cli.uvicorn  # type: ignore[attr-defined]


if __name__ == "__main__":
    main()
