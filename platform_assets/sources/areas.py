"""The landing area that the settings name."""

from __future__ import annotations

from typing import TYPE_CHECKING

from platform_assets.lakehouse.layout import stored
from platform_assets.places import folder_of
from platform_assets.sources.area import Area
from platform_assets.sources.folder_area import FolderArea

if TYPE_CHECKING:
    from platform_assets.settings import Settings


def landing_area(settings: Settings) -> Area:
    """Where sources deliver, to be looked at once.

    Raises:
        LakeError: it lies in an object store, and the packages for these are not installed.
    """
    if folder := folder_of(settings.landing):
        return FolderArea(folder, may_be_absent=folder == settings.state / "landing")
    root = stored(settings.landing)
    from platform_assets.sources.bucket_area import BucketArea  # which a landing folder does without

    return BucketArea(root)
