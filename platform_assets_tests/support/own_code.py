"""The code version that a transform has with modules that are given as texts."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from platform_assets.planning.code.reach import reached_code
from platform_assets.planning.code.source import Module, parse_module
from platform_assets.records.code_version import code_version

Sources = Mapping[str, str]


def version_of(sources: Sources, packages: Collection[str], module: str, function: str) -> str:
    """The code version of a function.

    Args:
        sources: of all modules, by name.
        packages: which of these are some.
        module: that the function is taken from.
        function: its name.
    """

    def find(name: str) -> Module | None:
        return parse_module(name, sources[name], is_package=name in packages) if name in sources else None

    def below(name: str) -> list[str]:
        top = name.partition(".")[0]
        return [one for one in sources if one.partition(".")[0] == top]

    return code_version(reached_code(find, below, module, function).texts)
