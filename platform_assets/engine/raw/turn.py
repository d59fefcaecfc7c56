"""A turn at a raw table: what is taken, approved, settled and withdrawn in it builds on each other, or fails."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property

from platform_assets.contracts import Contract
from platform_assets.engine.circuits import refuse_stopped
from platform_assets.engine.erasures import erased_keys
from platform_assets.engine.platform import Author, Platform
from platform_assets.engine.publishing import publish_changes
from platform_assets.engine.snapshot import LakeSnapshot
from platform_assets.engine.state.schema_changes import refuse_deliveries
from platform_assets.lakehouse.locks import ingest_lock
from platform_assets.lakehouse.releases import release
from platform_assets.planning.late_queue import late_table
from platform_assets.records.erased_keys import ErasedKeys
from platform_assets.records.manifest import Arrival, Kind, TableChange


class IngestTurn:
    """Whoever holds the ingest lock of a raw table.

    Nobody else publishes rows of it meanwhile. Should the lock be lost, somebody may: then what was listed, chosen or
    compared here is no longer so, and the next publication of the turn fails.
    """

    def __init__(self, platform: Platform, contract: Contract, author: Author) -> None:
        self.platform = platform
        self.contract = contract
        self.author = author
        self.snapshot = LakeSnapshot.now(platform)

    @cached_property
    def erased(self) -> ErasedKeys | None:
        """Tells rows that were erased and do not come back; whoever erases more waits for the end of the turn.

        Raises:
            OtherSecretError: they cannot be told.
        """
        return erased_keys(self.platform, self.contract)

    def publish(
        self, publication: str, kind: Kind, changes: Sequence[TableChange], arrivals: Sequence[Arrival] = ()
    ) -> None:
        """Publish on what the turn has read; what comes next reads this.

        Raises:
            LockLostError: somebody else has published rows of the table, or late ones, since the turn began.
        """
        read = self.snapshot.reads([self.contract.name, late_table(self.contract.name)])
        number = publish_changes(self.platform, publication, kind, changes, self.author, arrivals, on_versions=read)
        self.snapshot = LakeSnapshot(self.platform, release(self.platform.lake, number))


@contextmanager
def ingest_turn(platform: Platform, contract: Contract, author: Author) -> Iterator[IngestTurn]:
    """Be the only one who publishes rows of a raw table, on all that was published before.

    Raises:
        LockTimeoutError: somebody else held the lock for too long; the message says who.
        ContractError: the table cannot take rows of its contract.
        CircuitOpenError: a person stopped the table.
    """
    refuse_stopped(platform, "ingest", [contract.name])
    with ingest_lock(platform.lake, contract.name):
        platform.settle()
        turn = IngestTurn(platform, contract, author)
        refuse_deliveries(turn.snapshot, contract)
        yield turn
