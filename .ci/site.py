"""Hooks of mkdocs: what differs between a page in the repository and the same page on the site.

The project's README is the first page, docs/README.md the list of all pages. Flow charts in Mermaid, which a repository
shows by itself, become SVG here, so that no reader's browser loads a script for them. Drawings in SVG enter the page
itself, so that they follow its colour scheme; shown by a repository, they follow the browser's.
"""

from __future__ import annotations

import re
from html import escape
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

ROOT = Path(__file__).resolve().parent.parent
FENCE = re.compile(r"^```mermaid\n(.*?)^```$", re.MULTILINE | re.DOTALL)
NODE = re.compile(r"^\s*(\w+)(?:\[\"?(.*?)\"?\])?$")
DRAWING = re.compile(r"!\[(.*?)\]\((images/[a-z-]+\.svg)\)")
STYLE = re.compile(r"<style>.*?</style>\n", re.DOTALL)
EDGE = re.compile(r"^\s*(\w+) --> (\w+)$")
WIDTH, HEIGHT, GAP, RISE, LETTER = 24, 34, 18, 46, 8.2
"""Of a box: margin of its text, height; between boxes: beside, below; of a letter: width."""


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages whose text is elsewhere."""
    readme = (ROOT / "README.md").read_text(encoding="utf-8").replace("docs/README.md", "pages.md")
    pages = "---\nsearch: {exclude: true}\n---\n" + (ROOT / "docs" / "README.md").read_text(encoding="utf-8")
    files.append(File.generated(config, "index.md", content=re.sub(r"(?<=\()docs/", "", readme)))
    files.append(File.generated(config, "pages.md", content=pages))
    return files


def on_page_markdown(markdown: str, **_: object) -> str:
    """Link to the site's first page instead of the README; draw flow charts; put drawings into the page."""
    with_drawings = DRAWING.sub(lambda found: placed(*found.groups()), markdown.replace("(../README.md", "(index.md"))
    return FENCE.sub(lambda found: drawn(found[1]), with_drawings)


def placed(words: str, path: str) -> str:
    """Return a drawing as part of the page, without its own colours: site.css has them for both schemes."""
    svg = STYLE.sub("", (ROOT / "docs" / path).read_text(encoding="utf-8"))
    return svg.replace("<svg ", f'<svg class="drawing" role="img" aria-label="{escape(words)}" ').replace("\n", "")


def drawn(chart: str) -> str:
    """Draw a flow chart: each box below all that point at it, each subgraph in a frame of its own."""
    boxes: dict[str, str] = {}
    arrows: list[tuple[str, str]] = []
    group: dict[str, str] = {}
    inside = ""
    for line in chart.splitlines()[1:]:
        if line.strip().startswith("subgraph "):
            inside = line.split()[1]
            boxes[inside] = inside
        elif line.strip() == "end":
            inside = ""
        elif found := EDGE.match(line):
            arrows.append((found[1], found[2]))
        elif found := NODE.match(line):
            boxes[found[1]] = found[2] or found[1]
            if inside:
                group[found[1]] = inside
    outer = [box for box in boxes if box not in group]
    parts = [_svg(outer, [pair for pair in arrows if pair[0] in outer], boxes, "All")]
    parts += [
        _svg([box for box in boxes if group.get(box) == name], [pair for pair in arrows if group.get(pair[0]) == name],
             boxes, f"Inside {name}")
        for name in dict.fromkeys(group.values())
    ]  # fmt: skip
    return f'<div class="charts">{"".join(parts)}</div>'


def _svg(boxes: list[str], arrows: list[tuple[str, str]], words: dict[str, str], title: str) -> str:
    rows: dict[int, list[str]] = {}
    for box in boxes:
        rows.setdefault(_depth(box, arrows), []).append(box)
    wide = {box: len(words[box]) * LETTER + WIDTH for box in boxes}
    total = max(sum(wide[box] + GAP for box in row) for row in rows.values()) + GAP
    place: dict[str, tuple[float, float]] = {}
    for depth, row in rows.items():
        left = (total - sum(wide[box] + GAP for box in row) + GAP) / 2
        for box in row:
            place[box] = left + wide[box] / 2, depth * (HEIGHT + RISE) + 4
            left += wide[box] + GAP
    ends = [(*place[a], *place[b]) for a, b in arrows]
    lines = "".join(
        f'<line x1="{x:.0f}" y1="{y + HEIGHT:.0f}" x2="{to:.0f}" y2="{end - 5:.0f}" marker-end="url(#arrow)"/>'
        for x, y, to, end in ends
    )
    shapes = "".join(
        f'<rect x="{x - wide[box] / 2:.0f}" y="{y:.0f}" width="{wide[box]:.0f}" height="{HEIGHT}" rx="5"/>'
        f'<text x="{x:.0f}" y="{y + HEIGHT / 2 + 5:.0f}">{escape(words[box])}</text>'
        for box, (x, y) in place.items()
    )
    tall = max(rows) * (HEIGHT + RISE) + HEIGHT + 8
    head = '<marker id="arrow" viewBox="0 0 8 8" refX="6" refY="4" markerWidth="7" markerHeight="7" orient="auto">'
    return (
        f'<figure><svg class="chart" role="img" aria-label="{title}" viewBox="0 0 {total:.0f} {tall:.0f}" '
        f'style="max-width:{total:.0f}px"><defs>{head}<path d="M0 0L8 4L0 8z"/></marker></defs>{lines}{shapes}</svg>'
        f"<figcaption>{title}</figcaption></figure>"
    )


def _depth(box: str, arrows: list[tuple[str, str]]) -> int:
    return max((_depth(first, arrows) + 1 for first, second in arrows if second == box), default=0)
