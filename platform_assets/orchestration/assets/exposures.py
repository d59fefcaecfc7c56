"""What lies downstream of the platform, in the lineage: assets that Dagster shows and nobody can materialize."""

from __future__ import annotations

import dagster as dg

from platform_assets.contracts import Catalogue, Exposure
from platform_assets.orchestration.assets.description import shown_owners
from platform_assets.orchestration.assets.events import asset_key
from platform_assets.orchestration.shown import plain

_LAYER = "exposure"


def build_exposures(catalogue: Catalogue) -> list[dg.AssetSpec]:
    """An external asset for each exposure, beside the tables of the domain that declares it."""
    return [_spec(domain.name, exposure) for domain in catalogue.domains for exposure in domain.exposures]


def _spec(domain: str, exposure: Exposure) -> dg.AssetSpec:
    metadata = {"told at": plain(f"the address in {exposure.url_env}")}
    if exposure.page:
        metadata["page"] = dg.MetadataValue.url(exposure.page)
    return dg.AssetSpec(
        key=dg.AssetKey([_LAYER, exposure.name]),
        description="Lies outside of the platform, and is told of every publication that changed what it reads: "
        "`platform-assets outbox list` has what it was told.",
        deps=[asset_key(table) for table in exposure.reads],
        group_name=domain,
        owners=shown_owners(exposure.owner),
        kinds={_LAYER},
        tags={"domain": domain},
        metadata=metadata,
    )
