from __future__ import annotations
import pytest
from platform_assets.settings import load_settings
@pytest.fixture(scope="session")
def spark():
    from platform_assets.compute.session import create_session, stop_session
    s = create_session(load_settings(spark_conf={"spark.sql.shuffle.partitions":"2"}))
    yield s
    stop_session(s)
@pytest.fixture
def make_world(tmp_path, spark):
    from platform_assets.settings import load_settings, project_root
    from platform_assets_tests.world import World
    from datetime import date, timedelta
    made = []
    def make(days=31, first=date(2017,1,1), **o):
        made.append(0)
        last = first + timedelta(days=days-1)
        st = load_settings(state=tmp_path/f"world{len(made)}", jars=project_root()/".platform/jars", calendar_first=first, calendar_last=last, today=last, **o)
        return World(st, spark)
    return make
