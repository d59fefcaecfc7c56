"""Every example of docs/circuit.md runs, from an open circuit to a closed one."""

from __future__ import annotations

import re
import shlex

from platform_assets import contracts
from platform_assets.settings import Settings, project_root
from platform_assets_tests.support.circuits import fail
from platform_assets_tests.support.cli.commands import Run
from platform_assets_tests.support.cli.products import SILVER, arrive, compute


def test_every_example_runs(run: Run, products: Settings) -> None:
    text = (project_root() / "docs" / "circuit.md").read_text(encoding="utf-8")
    blocks = re.findall(r"^```(\w+)\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)
    arrive(products, "empty.csv", 0)
    for number in range(5):
        fail(products, f"night-{number}")
    codes: list[tuple[str, int]] = []
    for language, block in blocks:
        if language == "python":
            exec(compile(block, "docs/circuit.md", "exec"), {**vars(contracts)})
        for line in block.splitlines() if language == "sh" else ():
            said = run(*shlex.split(line)[3:])
            codes.append((line.split()[3], said.code))
            if " show " in line or line.endswith("refresh"):
                assert f"the circuit of {SILVER} is open since" in " ".join(said.out.split())
            if "--until" in line and SILVER in line:
                compute(products)
    look, done = 1, 0
    assert codes == [
        ("breaker", look),
        ("breaker", look),
        ("refresh", look),
        *[("breaker", done)] * 4,
    ]
    assert run("breaker", "list").code == 0
    assert run("audit", "verify").code == 0
