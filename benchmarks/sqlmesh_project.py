"""The same two models for SQLMesh, on the same Spark and Delta: its own environment, project, metastore and state.

Raw is a Delta table that SQLMesh only reads, with moved keys resolved by tombstones already. The models keep the rows
that break no rule, pick the newest version of each key and day, and sum by store, as `benchmarks.store_sales` does.
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from datetime import date
from pathlib import Path

from benchmarks.environments import environment
from benchmarks.harness import BenchmarkError, Run, run_command
from platform_assets.domains.retail.contracts import SILVER_TRANSACTIONS
from platform_assets.settings import load_settings, project_root
from platform_assets.spark.session.configuration import configuration
from platform_assets.spark.session.jars import ALWAYS
from platform_assets.spark.session.java import find_java

PINS = ("sqlmesh==0.236.4", "pyspark==4.2.0", "pandas>=2.2,<3")
SILVER, GOLD = "shop.silver_transactions", "shop.store_sales"

_MODEL = """\
MODEL (
  name {name},
  kind INCREMENTAL_BY_TIME_RANGE (time_column event_date),
  partitioned_by (event_date),
  storage_format delta,
  start '{first}',
  end '{last}',
  cron '@daily'
);
"""
_SILVER = """
SELECT {columns}, (sales_value - coupon_disc)::DECIMAL(12, 2) AS net_amount, event_date
FROM (
  SELECT *, ROW_NUMBER() OVER (
    PARTITION BY event_date, basket_id, product_id
    ORDER BY updated_at DESC, _arrival_date DESC, voided DESC, _file_order DESC, _place DESC
  ) AS _rank
  FROM raw.transactions
  WHERE event_date BETWEEN @start_date AND @end_date AND (_kind = 'tombstone' OR ({rules}))
)
WHERE _rank = 1 AND _kind = 'record'
"""
_GOLD = """
SELECT
  store_id,
  COUNT(*)::BIGINT AS lines,
  COUNT(DISTINCT basket_id)::BIGINT AS baskets,
  SUM(quantity)::BIGINT AS units,
  SUM(sales_value + retail_disc + coupon_match_disc)::DECIMAL(18, 2) AS gross,
  SUM(retail_disc + coupon_match_disc + coupon_disc)::DECIMAL(18, 2) AS discounts,
  SUM(sales_value - coupon_disc)::DECIMAL(18, 2) AS net,
  event_date
FROM shop.silver_transactions
WHERE event_date BETWEEN @start_date AND @end_date
GROUP BY event_date, store_id
"""


def installed() -> Path:
    """The `sqlmesh` program of an environment of its own, installed from PyPI unless it is there already."""
    return environment(project_root() / ".platform" / "benchmarks" / "sqlmesh", PINS) / "sqlmesh"


@dataclass(frozen=True)
class Project:
    """A SQLMesh project and all it keeps: a copy of its folder, put back where it was, is a copy of its state."""

    program: Path
    folder: Path
    raw: Path
    jars: Path
    first: date
    last: date

    def load(self) -> Run:
        """Write the project and run the first plan, which computes every day."""
        (self.folder / "models").mkdir(parents=True)
        (self.folder / "config.yaml").write_text(json.dumps(self._config(), indent=2), encoding="utf-8")  # JSON is YAML
        rules = " AND ".join(f"({rule.expression})" for rule in SILVER_TRANSACTIONS.rules)
        columns = ", ".join(name for name in SILVER_TRANSACTIONS.column_names if name != "net_amount")
        for name, query in ((SILVER, _SILVER.format(columns=columns, rules=rules)), (GOLD, _GOLD)):
            model = _MODEL.format(name=name, first=self.first, last=self.last) + query
            (self.folder / "models" / f"{name.partition('.')[2]}.sql").write_text(model, encoding="utf-8")
        self._run("fetchdf", "CREATE DATABASE raw")
        self._run("fetchdf", f"CREATE TABLE raw.transactions USING delta LOCATION '{self.raw}'")
        return self._run("plan", "--auto-apply", "--no-prompts", "--skip-tests")

    def restate(self, first: date, last: date, *, explain: bool = False) -> Run:
        """Recompute the silver model and what reads it over one range, which is what a plan can name."""
        how = ("--explain",) if explain else ("--auto-apply",)
        range_ = ("--restate-model", SILVER, "--start", str(first), "--end", str(last))
        return self._run("plan", *how, "--no-prompts", "--skip-tests", *range_)

    def run(self) -> Run:
        """What a scheduler starts every day; without missing days it finds nothing to do."""
        return self._run("run")

    def table(self, model: str) -> Path:
        """The Delta table of a model."""
        found = sorted(self.folder.glob(f"warehouse/**/{model.replace('.', '__')}__*/_delta_log"))
        if len(found) != 1:
            raise BenchmarkError(f"SQLMesh has {len(found)} tables for {model} in {self.folder / 'warehouse'}.")
        return found[0].parent

    def _run(self, *arguments: str) -> Run:
        return self._process(self.program, "--paths", self.folder, "--log-file-dir", self.folder / "logs", *arguments)

    def _process(self, *command: object) -> Run:
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("PLATFORM_", "SQLMESH"))}
        env = kept | {
            "JAVA_HOME": str(find_java().executable.resolve().parent.parent),
            "SQLMESH__DISABLE_ANONYMIZED_ANALYTICS": "true",
            "MALLOC_ARENA_MAX": "2",  # as in the platform's own processes
        }
        return run_command(command, env=env, log=self.folder / "benchmark.log")

    def _config(self) -> dict[str, object]:
        settings = load_settings(state=self.folder, jars=self.jars)
        jars = tuple(self.jars / jar.file for jar in ALWAYS)
        spark = configuration(settings, jars) | {
            "spark.master": settings.spark_master,
            "spark.sql.shuffle.partitions": str(max(2, os.cpu_count() or 2)),
            "spark.sql.warehouse.dir": str(self.folder / "warehouse"),
            "spark.driver.memory": settings.spark_driver_memory,
            "spark.driver.extraClassPath": os.pathsep.join(map(str, jars)),
            "spark.driver.extraJavaOptions": "-XX:+UseParallelGC -Duser.timezone=UTC "
            f"-Dderby.system.home={self.folder / 'derby'}",
            "spark.hadoop.javax.jdo.option.ConnectionURL": "jdbc:derby:;databaseName="
            f"{self.folder / 'metastore'};create=true",
        }
        state = {"type": "duckdb", "database": str(self.folder / "state.db")}
        return {
            "gateways": {"spark": {"connection": {"type": "spark", "config": spark}, "state_connection": state}},
            "default_gateway": "spark",
            "model_defaults": {"dialect": "spark"},
            "disable_anonymized_analytics": True,
        }
