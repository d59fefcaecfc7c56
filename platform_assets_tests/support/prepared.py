"""Installations that many tests begin with: made once in a run, and copied for every test.

A recipe is a function that makes an installation and gives it what those tests begin with. It must leave the rest of
the run as it was, so it patches nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from pathlib import Path
from typing import Any, Protocol, Self, TypeVar

from pyspark.sql import SparkSession

from platform_assets_tests.support.world import World, empty_world


class Copyable(Protocol):
    """An installation, or something that holds one."""

    def copied_to(self, state: Path) -> Self:
        """The same with an installation of its own."""
        ...


Made = TypeVar("Made", bound=Copyable)


class Prepared(Protocol):
    """What tests ask for copies."""

    def __call__(self, recipe: Callable[..., Made], *args: Hashable) -> Made:
        """A copy of what the recipe makes with these arguments."""
        ...


class Lakes:
    """What recipes have made in this run."""

    def __init__(self, folder: Path, spark: SparkSession) -> None:
        self._folder = folder
        self._spark = spark
        self._made: dict[Hashable, Any] = {}
        self._states = 0

    def new(self, days: int = 31, **settings: Any) -> World:
        """An empty installation for a recipe to fill."""
        return empty_world(self._state(), self._spark, days, **settings)

    def again(self, recipe: Callable[..., Made], *args: Hashable) -> Made:
        """A copy of what another recipe makes, for a recipe to go on with."""
        return self.copy(self._state(), recipe, *args)

    def copy(self, state: Path, recipe: Callable[..., Made], *args: Hashable) -> Made:
        """A copy in a folder of its own; the recipe is followed when it is asked for the first time."""
        if (recipe, args) not in self._made:
            self._made[recipe, args] = recipe(self, *args)
        made: Made = self._made[recipe, args]
        return made.copied_to(state)

    def _state(self) -> Path:
        self._states += 1
        return self._folder / str(self._states)
