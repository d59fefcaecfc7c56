"""OpenLineage: events for each table of a publication, and their way to the client.

The client's configuration says where events go: OPENLINEAGE_URL, or an `openlineage.yml`. It is imported late: the
package is optional, and takes half a second.
"""

from __future__ import annotations

import logging
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from functools import partial
from urllib.parse import urlsplit
from uuid import NAMESPACE_URL, uuid5

import attr
import requests
from openlineage.client import OpenLineageClient, event_v2
from openlineage.client import facet_v2 as of
from openlineage.client.generated.base import DatasetFacet, JobFacet, OutputDatasetFacet, RunFacet
from openlineage.client.transport.transport import Transport

from platform_assets.contracts import DAY, Catalogue, Contract
from platform_assets.engine.platform import Platform
from platform_assets.engine.user_code import UserCode, column_sources
from platform_assets.errors import PlatformError
from platform_assets.lakehouse.releases import manifest_of
from platform_assets.lakehouse.releases import release as release_at
from platform_assets.operations.webhook import WebhookError
from platform_assets.planning.windows import as_named
from platform_assets.quality.findings import checks_before_publication
from platform_assets.records.history import ROLL_BACK
from platform_assets.records.manifest import STAGED, Manifest, TableChange, Warned, change_of, platform_version

FACET_SCHEMA = "urn:platform-assets:openlineage:1-0-0:PlatformPublicationRunFacet"
"""Its text is docs/platform-publication-facet.json."""
_NAMESPACE = "platform-assets"
_CLOSES_S = 30.0
_PASSWORDS = re.compile(r"[^\s@]+@")
"""What may be one in an address that the client cannot use, and quotes."""


@attr.define
class PlatformPublicationRunFacet(RunFacet):
    """Facet with the publication of a run, its author and reason."""

    publication: str
    release: int
    kind: str
    decides: str
    who: str
    why: str
    run: str
    codeVersion: str  # noqa: N815 - as the format names fields
    gitCommit: str  # noqa: N815
    days: list[str]
    restores: list[str]

    @staticmethod
    def _get_schema() -> str:
        return FACET_SCHEMA


@dataclass(frozen=True)
class Published:
    """A publication, with what its manifest does not have.

    Args:
        versions: versions of all tables in the release that shows it.
        lake: root, a folder or a URL; `landing` likewise.
        columns: inputs of each column as `<layer>.<table>.<column>`; empty if the present code did not compute the
            days.
        query: query of a table in SQL; empty likewise.
    """

    manifest: Manifest
    release: int
    versions: Mapping[str, int]
    catalogue: Catalogue
    lake: str
    landing: str
    columns: Mapping[str, tuple[str, ...]]
    query: str = ""
    namespace: str = _NAMESPACE


def run_events(published: Published, table: str) -> tuple[event_v2.RunEvent, event_v2.RunEvent]:
    """Return how a table's days were computed and published: the start of a run, and its end with all facets.

    The same publication gives the same events, so a repeated event changes nothing.
    """
    manifest, contract = published.manifest, published.catalogue[table]
    change = change_of(manifest, table)
    job = event_v2.Job(published.namespace, table, facets=_job_facets(published, contract))
    began = manifest.created_at - timedelta(seconds=change.seconds)
    run_id = str(uuid5(NAMESPACE_URL, f"{published.namespace}/{manifest.publication}/{table}"))
    producer = f"pkg:pypi/platform-assets@{platform_version()}"
    event = partial(event_v2.RunEvent, job=job, producer=producer, inputs=list(_inputs(published, change)))
    return (
        event(eventType=event_v2.RunState.START, eventTime=began.isoformat(), run=event_v2.Run(run_id)),
        event(
            eventType=event_v2.RunState.COMPLETE,
            eventTime=manifest.created_at.isoformat(),
            run=event_v2.Run(run_id, facets=_run_facets(published, contract, change)),
            outputs=[_output(published, contract, change)],
        ),
    )


def dataset_of(root: str, *parts: str) -> tuple[str, str]:
    """Return namespace and name of a folder, as OpenLineage names files on disks and in object stores."""
    url = urlsplit(root)
    if url.scheme in ("", "file"):
        return "file", "/".join((url.path, *parts))
    return f"{url.scheme}://{url.netloc}", "/".join(filter(None, (url.path.strip("/"), *parts)))


def _table(published: Published, table: str) -> tuple[str, str]:
    return dataset_of(published.lake, *table.split("."))


def _inputs(published: Published, change: TableChange) -> Iterator[event_v2.InputDataset]:
    """Yield the input tables, each at its version, and for a raw table its landing folder."""
    for read, at in sorted(change.reads.items()):
        version = published.versions.get(read, at) if at == STAGED else at
        facets = {"version": of.dataset_version_dataset.DatasetVersionDatasetFacet(str(version))}
        yield event_v2.InputDataset(*_table(published, read), facets={**facets, **_symlink(published, read)})
    source = published.catalogue[change.table].source
    if source and (arrivals := [one for one in published.manifest.arrivals if one.table == change.table]):
        statistics = of.input_statistics_input_dataset.InputStatisticsInputDatasetFacet(
            rowCount=sum(one.landed for one in arrivals),
            size=sum(one.size for one in arrivals),
            fileCount=len(arrivals),
        )
        name = dataset_of(published.landing, source.folder)
        yield event_v2.InputDataset(*name, inputFacets={"inputStatistics": statistics})


def _output(published: Published, contract: Contract, change: TableChange) -> event_v2.OutputDataset:
    days = change.days
    rows, size, files = (
        sum(counts) for counts in zip(*((day.rows, day.bytes, len(day.files)) for day in days.values()), strict=True)
    )
    field = of.schema_dataset.SchemaDatasetFacetFields
    columns = [field(column.name, column.type, column.description) for column in contract.columns]
    facets: dict[str, DatasetFacet] = {
        "version": of.dataset_version_dataset.DatasetVersionDatasetFacet(str(published.versions[contract.name])),
        "schema": of.schema_dataset.SchemaDatasetFacet([*columns, field(DAY, "date", "The day.")]),
        "storage": of.storage_dataset.StorageDatasetFacet("delta", "parquet"),
        "dataQualityMetrics": of.data_quality_metrics_dataset.DataQualityMetricsDatasetFacet(
            columnMetrics={}, rowCount=rows, bytes=size, fileCount=files
        ),
        **_symlink(published, contract.name),
    }
    if sources := {name: _fields(published, read) for name, read in published.columns.items() if read}:
        facets["columnLineage"] = of.column_lineage_dataset.ColumnLineageDatasetFacet(sources)
    partitions = [of.base_subset_dataset.Partition({DAY: str(day)}) for day in sorted(days)]
    condition = of.base_subset_dataset.PartitionSubsetCondition(partitions)
    output_facets: dict[str, OutputDatasetFacet] = {
        "outputStatistics": of.output_statistics_output_dataset.OutputStatisticsOutputDatasetFacet(rows, size, files),
        "subset": of.base_subset_dataset.OutputSubsetOutputDatasetFacet(condition),
    }
    return event_v2.OutputDataset(*_table(published, contract.name), facets=facets, outputFacets=output_facets)


def _fields(published: Published, read: Sequence[str]) -> of.column_lineage_dataset.Fields:
    names = [one.rpartition(".") for one in read]
    return of.column_lineage_dataset.Fields(
        [of.column_lineage_dataset.InputField(*_table(published, table), column) for table, _, column in names]
    )


def _symlink(published: Published, table: str) -> dict[str, DatasetFacet]:
    named = of.symlinks_dataset.Identifier(published.namespace, table, "TABLE")
    return {"symlinks": of.symlinks_dataset.SymlinksDatasetFacet([named])}


def _job_facets(published: Published, contract: Contract) -> dict[str, JobFacet]:
    query = {"sql": of.sql_job.SQLJobFacet(published.query, "spark")} if published.query else {}
    return {
        "jobType": of.job_type_job.JobTypeJobFacet("BATCH", "PLATFORM_ASSETS", "TABLE"),
        "documentation": of.documentation_job.DocumentationJobFacet(contract.description),
        "ownership": of.ownership_job.OwnershipJobFacet([of.ownership_job.Owner(contract.owner)]),
        **query,
    }


def _run_facets(published: Published, contract: Contract, change: TableChange) -> dict[str, RunFacet]:
    manifest, days = published.manifest, change.days
    first, last = min(days), max(days)
    facets: dict[str, RunFacet] = {
        "nominalTime": of.nominal_time_run.NominalTimeRunFacet(_midnight(first), _midnight(last + timedelta(days=1))),
        "platformPublication": PlatformPublicationRunFacet(
            publication=manifest.publication,
            release=published.release,
            kind=manifest.kind,
            decides=manifest.decides,
            who=manifest.who,
            why=manifest.why,
            run=manifest.run,
            codeVersion=change.code_version,
            gitCommit=change.git_commit,
            days=as_named(days),
            restores=sorted({content.restores for content in days.values() if content.restores}),
        ),
    }
    if contract.inputs and manifest.kind != ROLL_BACK:
        facets["test"] = of.test_run.TestRunFacet(list(_tests(contract, change)))
    return facets


def _midnight(day: date) -> str:
    return datetime.combine(day, time(), UTC).isoformat()


def _tests(contract: Contract, change: TableChange) -> Iterator[of.test_run.TestExecution]:
    """Yield each gate that judged the days: passed, or published with a warning and the first finding."""
    warned: dict[str, tuple[date, Warned]] = {}
    for day, content in sorted(change.days.items()):
        for one in content.warnings:
            warned.setdefault(one.gate, (day, one))
    for gate in dict.fromkeys((*checks_before_publication(contract), *warned)):
        test = partial(of.test_run.TestExecution, name=f"{contract.name} {gate}", type=gate)
        if gate in warned:
            day, found = warned[gate]
            yield test(status="fail", severity="warn", expected=found.expected, actual=f"{day}: {found.found}")
        else:
            yield test(status="pass", severity="error")


def emit(platform: Platform, publication: str, table: str) -> None:
    """Send the events of a publication and table.

    Raises:
        WebhookError: the publication no longer exists, the client has no usable configuration, or its receiver did not
            accept them.
    """
    try:
        events = run_events(_published(platform, publication, table), table)
    except PlatformError as error:  # such as a table that is gone; others have theirs
        raise WebhookError(f"has no events of {table}: {error.what.rstrip('.')}", is_answer=True) from error
    if (file := platform.settings.lineage_file) is not None:
        os.environ.setdefault("OPENLINEAGE_CONFIG", str(file))
    with _refused_by_log():
        try:
            # The address of the working directory's repository, which the client would add, may hold a password.
            client = OpenLineageClient(config={"facets": {"source_code_location": {"disabled": True}}})
            if _is_unset(client.transport, client.config.transport):
                raise WebhookError("openlineage.yml, or the variables OPENLINEAGE__…, name no transport")
            for event in events:
                client.emit(event)
            client.close(timeout=_CLOSES_S)
        except requests.HTTPError as error:
            status = error.response.status_code if error.response is not None else "with an error"
            raise WebhookError(f"answered {status}", is_answer=True) from None
        except requests.RequestException as error:
            raise WebhookError(f"cannot be reached ({type(error).__name__})") from None
        except WebhookError:
            raise
        except Exception as error:  # noqa: BLE001 - transports raise what their libraries do, such as KafkaException
            problem = _PASSWORDS.sub("***@", str(error))
            raise WebhookError(f"cannot be sent to: {problem}") from None


def _is_unset(transport: Transport, configured: object) -> bool:
    """Return whether the client would print events because it found no configuration, as it does by default."""
    return transport.kind == "console" and not (isinstance(configured, Mapping) and configured.get("type"))


def _published(platform: Platform, publication: str, table: str) -> Published:
    manifest, release = manifest_of(platform.lake, publication), platform.ledger.release_of(publication)
    contract, change = platform.catalogue[table], change_of(manifest, table)
    is_code_of_now = bool(contract.inputs) and platform.code_versions[table] == change.code_version
    query = UserCode(platform.catalogue.domain_of(table)).query(contract) if is_code_of_now else None
    return Published(
        manifest=manifest,
        release=release,
        versions=release_at(platform.lake, release).versions,
        catalogue=platform.catalogue,
        lake=str(platform.settings.lake),
        landing=str(platform.settings.landing),
        columns=column_sources(platform.catalogue, contract) if is_code_of_now else {},
        query=query.statement.source if query else "",
        namespace=os.environ.get("OPENLINEAGE_NAMESPACE") or _NAMESPACE,
    )


class _Failures(logging.Handler):
    """Collect errors that the client only logs: of Kafka, of one of several transports, of a file."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.found: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        if record.levelno >= logging.ERROR or record.name.endswith(".composite"):
            self.found.append(record.name.rpartition(".")[2])


@contextmanager
def _refused_by_log() -> Iterator[None]:
    logger, failures = logging.getLogger("openlineage"), _Failures()
    logger.addHandler(failures)
    try:
        yield
    finally:
        logger.removeHandler(failures)
    if failures.found:
        raise WebhookError(f"was not reached by the client's {failures.found[0]}; its log says why")
