"""The tables of `windows`, whose silver table opens its circuit with the first failure of the code or a gate."""

from dataclasses import replace

from platform_assets.contracts import Circuit, Domain
from platform_assets_tests.support.domains import windows

ONCE = Circuit(at_once=("code", "volume", "contract"))
DOMAIN = Domain(
    "breaking",
    tuple(replace(t, circuit=ONCE) if t.name == "silver.transactions" else t for t in windows.TABLES),
    "platform_assets.domains.retail.transforms",
)
