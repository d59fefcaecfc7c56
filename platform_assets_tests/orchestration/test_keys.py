"""Keys of whole silver tables that lie on two days, as the scheduled job and the command look for them."""

from __future__ import annotations

import dagster as dg
import pytest

from platform_assets.orchestration.build import build_definitions
from platform_assets_tests.support.cli.commands import Run, run, state
from platform_assets_tests.support.feeds import FEEDS, deliver, order
from platform_assets_tests.support.world import MakeWorld

__all__ = ["run", "state"]


def test_the_job_fails_and_the_command_too_once_a_key_lies_on_two_days_and_both_name_it(
    make_world: MakeWorld, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two refreshes and two runs in this process."""
    world = make_world(days=3, domains=FEEDS)
    monkeypatch.setenv("PLATFORM_DOMAINS", FEEDS)
    monkeypatch.setenv("PLATFORM_STATE", str(world.settings.state))
    definitions = build_definitions(world.settings)
    schedule = definitions.resolve_schedule_def("keys")
    assert (schedule.job_name, schedule.default_status) == ("keys", dg.DefaultScheduleStatus.RUNNING)
    job = definitions.resolve_job_def("keys")
    deliver(world, order(1, "10.00", 1), order(2, "20.00", 1, day="2017-01-02"))
    world.refresh()
    assert job.execute_in_process().success
    assert run("verify", "--keys").out.strip() == "once silver.orders"
    deliver(world, order(2, "25.00", 2, day="2017-01-03"), arrival="2017-01-03")
    world.refresh()
    with pytest.raises(
        dg.Failure, match=r"count twice\. silver\.orders: 1 key on 2017-01-02 and 2017-01-03, first order"
    ):
        job.execute_in_process()
    told = run("verify", "silver.orders", "--keys")
    assert (told.code, told.out.strip()) == (
        1,
        "counted twice silver.orders; 1 key on 2017-01-02 and 2017-01-03, first order_id 2",
    )
    assert run("verify", "--keys", "--days", "2017-01-02").code == 2
