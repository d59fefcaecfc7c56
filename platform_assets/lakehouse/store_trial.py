"""What an object store has to be able to do, tried on the store itself: nothing else tells it for sure."""

from __future__ import annotations

from secrets import token_hex

from platform_assets.lakehouse.errors import LakeError
from platform_assets.lakehouse.layout import Lake, stored


def tried(lake: Lake) -> str:
    """Write, read, list and delete below the lake, as keeps a lake safe.

    A conditional write has one winner, and a listing begins where it is asked to.

    Returns:
        Which protection holds, in words.

    Raises:
        LakeError: the store cannot be reached, does not let us, or cannot do what keeps a lake safe.
    """
    probe = lake.root / f"_trial/{token_hex(8)}"
    later = lake.root / f"_trial/{probe.name}-later"
    try:
        # What the first says is not asked for: a store that wrote it and could not say so is asked again, and denies it
        probe.write_new(b"1")
        if probe.write_new(b"2") or probe.read() != b"1":
            raise LakeError(
                f"The store of {lake.root} has no conditional writes: of two that write a new file, both did.",
                "Keep the lake in a store that has them (Amazon S3, MinIO, Ceph from Squid on, Azure), or on a disk.",
            )
        folder = stored(str(probe.parent))
        if probe.name not in folder.names():
            raise LakeError(
                f"The store of {lake.root} does not list what was just written.",
                "Keep the lake in a store that shows at once what it has acknowledged.",
            )
        later.write_new(b"")
        if folder.names_after(later.name) & {probe.name, later.name}:
            raise LakeError(
                f"The store of {lake.root} does not list what comes after a name: it lists everything, and deltalake "
                "takes commits that it knows for new ones.",
                "Keep the lake in a store that can. Of Azurite it is known: say AZURE_STORAGE_USE_EMULATOR=true and "
                "AZURITE_BLOB_STORAGE_URL=http://127.0.0.1:10000 instead of AZURE_STORAGE_ENDPOINT.",
            )
    finally:
        later.remove()
        probe.remove()
    if lake.lock_url:
        return "conditional writes, and locks in PostgreSQL"
    return f"conditional writes; locks, which only keep this machine's processes apart, in {lake.lock_folder}"
