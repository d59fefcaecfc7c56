"""One SQLMesh plan after another in one process: each restates one day. Runs in SQLMesh's own environment.

python benchmarks/sqlmesh_plans.py PROJECT MODEL 2017-02-02 2017-11-29
"""

from __future__ import annotations

import sys

from sqlmesh import Context


def main() -> None:
    """Restate each day on its own, as somebody does who knows that a plan has one range."""
    project, model, *days = sys.argv[1:]
    context = Context(paths=project)
    for day in days:
        context.plan(restate_models=[model], start=day, end=day, auto_apply=True, no_prompts=True, skip_tests=True)


if __name__ == "__main__":
    main()
