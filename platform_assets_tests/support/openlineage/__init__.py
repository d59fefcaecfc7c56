"""A consumer of OpenLineage events: real HTTP, which takes only what the published schemas of the format allow.

`spec.json` has these schemas as openlineage.io publishes them (Apache-2.0), without descriptions and examples.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from jsonschema import Draft202012Validator
from jsonschema.protocols import Validator
from referencing import Registry

from platform_assets_tests.support.http import Quiet, serving

OWN_SCHEMA = json.loads((Path(__file__).parents[3] / "docs" / "platform-publication-facet.json").read_text())
_SCHEMAS = [*json.loads(Path(__file__).with_name("spec.json").read_text()), OWN_SCHEMA]
_REGISTRY: Registry[Any] = Registry().with_contents((each["$id"], each) for each in _SCHEMAS)
_BY_NAME = {each["$id"].rpartition("/")[2].rpartition(":")[2]: each["$id"] for each in _SCHEMAS}


def problems(event: dict[str, Any]) -> list[str]:
    """What the schemas of the event and of each of its facets say is wrong with it."""
    found = [error.message for error in _validator(event["schemaURL"]).iter_errors(event)]
    for name, facet in facets(event):
        schema = facet["_schemaURL"]
        known = _BY_NAME.get(schema.partition("#")[0].rpartition("/")[2].rpartition(":")[2])
        if known is None:
            found.append(f"{name}: no schema {schema}")
            continue
        # The client knows a later revision of some schemas than what is stored here, of the same facet.
        validator = _validator(f"{known}#{schema.partition('#')[2]}")
        found += [f"{name}: {error.message}" for error in validator.iter_errors(facet)]
    return found


def facets(event: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """All facets of an event, by name."""
    holders = [event["run"], event["job"], *event.get("inputs", []), *event.get("outputs", [])]
    for holder in holders:
        for field in ("facets", "inputFacets", "outputFacets"):
            yield from (holder.get(field) or {}).items()


def _validator(schema: str) -> Validator:
    checker = Draft202012Validator.FORMAT_CHECKER
    return Draft202012Validator({"$ref": schema}, registry=_REGISTRY, format_checker=checker)


class Consumer:
    """Answers 201 for a valid event and 422 for any other, with what is wrong."""

    def __init__(self) -> None:
        self.events: list[dict[str, Any]] = []
        self.refused: list[str] = []
        self.status = 201
        self.authorizations: set[str | None] = set()
        consumer = self

        class Handler(Quiet):
            def respond(self) -> None:
                event = json.loads(self.content())
                consumer.authorizations.add(self.headers["Authorization"])
                wrong = problems(event)
                consumer.refused += wrong
                if consumer.status == 201 and not wrong:
                    consumer.events.append(event)
                self.answer(422 if wrong else consumer.status)

        self.handler = Handler
        self.url = ""

    def of(self, table: str) -> list[dict[str, Any]]:
        """The ends of the runs of a table."""
        return [each for each in self.events if each["job"]["name"] == table and each["eventType"] == "COMPLETE"]


@contextmanager
def consuming() -> Iterator[Consumer]:
    """A consumer that answers within."""
    consumer = Consumer()
    with serving(consumer.handler) as port:
        consumer.url = f"http://127.0.0.1:{port}"
        yield consumer
