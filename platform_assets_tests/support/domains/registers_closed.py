"""The registers after the books of their first two days were closed."""

from dataclasses import replace
from datetime import date

from platform_assets.contracts import Domain, Protected
from platform_assets_tests.support.domains import registers

CLOSED = Protected(date(2017, 1, 1), date(2017, 1, 2), since=date(2017, 1, 20), reason="the books are closed")
DOMAIN = Domain(
    "registers",
    tuple(replace(t, protected=(CLOSED,)) if t.name == "raw.lines" else t for t in registers.TABLES),
    registers.DOMAIN.transforms,
)
