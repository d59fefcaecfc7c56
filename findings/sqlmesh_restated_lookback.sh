#!/usr/bin/env bash
# SQLMesh 0.236.4 on DuckDB: restating one day of a model leaves later days of a model with lookback as they were.
#
# Expected: `lookback 2` says that a day of the rolling model is computed from the two days before it as well, so a
# restated day 5 makes days 5, 6 and 7 of the rolling model out of date, and a plan that restates day 5 of its source
# computes these three.
# Seen: only day 5 is computed in both models; days 6 and 7 keep sums of what the source no longer holds, and the next
# plan reports nothing to do. `lookback` widens scheduled runs backwards; restatements are not widened forwards.
# For a user: restate the changed days plus the lookback, by hand.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/python"
"$folder/python/bin/pip" install --quiet --disable-pip-version-check sqlmesh==0.236.4 duckdb==1.4.4
cd "$folder"
mkdir -p project/models
cat >project/config.yaml <<'YAML'
gateways:
  local:
    connection: {type: duckdb, database: db.duckdb}
default_gateway: local
model_defaults: {dialect: duckdb, start: "2024-03-01"}
disable_anonymized_analytics: true
YAML
cat >project/models/daily.sql <<'SQL'
MODEL (name s.daily, kind INCREMENTAL_BY_TIME_RANGE (time_column day), start '2024-03-01', cron '@daily');
SELECT day, amount FROM source.sales WHERE day BETWEEN @start_date AND @end_date
SQL
cat >project/models/rolling.sql <<'SQL'
MODEL (name s.rolling, kind INCREMENTAL_BY_TIME_RANGE (time_column day, lookback 2), start '2024-03-01', cron '@daily');
SELECT d.day, SUM(e.amount) AS amount
FROM s.daily AS d JOIN s.daily AS e ON e.day BETWEEN d.day - INTERVAL 2 DAY AND d.day
WHERE d.day BETWEEN @start_date AND @end_date
GROUP BY d.day
SQL
cd project
../python/bin/python - <<'PYTHON'
import duckdb
from sqlmesh import Context

with duckdb.connect("db.duckdb") as db:
    db.execute("CREATE SCHEMA source")
    db.execute(
        "CREATE TABLE source.sales AS SELECT d::DATE AS day, 1 AS amount "
        "FROM generate_series(DATE '2024-03-01', DATE '2024-03-10', INTERVAL 1 DAY) AS t(d)"
    )


def run(**plan: object) -> None:
    context = Context(paths=".")
    plan = {"execution_time": "2024-03-11"} | plan
    context.plan(auto_apply=True, no_prompts=True, **plan)
    context.close()


def rolling() -> dict[str, int]:
    with duckdb.connect("db.duckdb") as db:
        return {f"{day}": amount for day, amount in db.execute("SELECT * FROM s.rolling ORDER BY 1").fetchall()}


run()
before = rolling()
with duckdb.connect("db.duckdb") as db:
    db.execute("UPDATE source.sales SET amount = 101 WHERE day = DATE '2024-03-05'")
run(start="2024-03-05", end="2024-03-05", restate_models=["s.daily"])
# the plan covers one day, in both models
after = rolling()
run()
changed = {day: (before[day], amount) for day, amount in rolling().items() if amount != before[day]}
print("sum of three days, before and after day 5 grew by 100:", changed)
assert before["2024-03-06"] == 3 and after == rolling()
assert [day[:10] for day in changed] == ["2024-03-05"], changed
PYTHON
