"""report.html: one file that works offline. First the verdict, which nodes, why, and what to do; below it everything that was measured.

What is said first is plain HTML. The rest is drawn by the scripts in page/ from the run's data, which stands in the file as JSON.
The page asks for nothing: its Content-Security-Policy forbids every request, and lets only its own scripts run, by their hashes.
"""

from __future__ import annotations

import base64
import hashlib
import html
import json
from pathlib import Path
from string import Template
from typing import Any

from nodectl.advise.advice import Advice
from nodectl.report.compare import Comparison
from nodectl.report.compare_text import comparison_html
from nodectl.report.fold import Summary
from nodectl.report.human import printable
from nodectl.report.page_advice import advice_html
from nodectl.report.page_data import page_data
from nodectl.report.page_top import actions, causes, facts, headline, sign

ASSETS = Path(__file__).parent / "page"
SCRIPTS = ("elements.js", "format.js", "data.js", "rack.js", "node.js", "checks.js", "pairs.js", "chart.js", "main.js")


def page(summary: Summary, comparison: Comparison | None = None, advice: Advice | None = None) -> str:
    """The whole file. ``comparison`` is shown where the run was compared with another, ``advice`` where a workload was given."""
    style = _asset("style.css") + _asset("uplot.css")
    library, ours = _asset("uplot.js"), "(() => {\n\"use strict\";\n" + "".join(_asset(name) for name in SCRIPTS) + "})();\n"
    policy = f"default-src 'none'; script-src {_hash(library)} {_hash(ours)}; style-src {_hash(style)}; img-src data:; base-uri 'none'; form-action 'none'"
    return Template(_asset("page.html")).substitute(
        policy=policy, style=style, library=library, ours=ours, data=embedded(page_data(summary)), license=_asset("uplot.license").replace("--", "- -"),
        title=html.escape(printable(f"{headline(summary)} · {summary.run_id}")), sign=sign(summary), headline=html.escape(printable(headline(summary))),
        facts="".join(facts(summary)), why="".join(causes(summary)), actions="".join(actions(summary)),
        comparison=comparison_html(comparison) if comparison else "", advice=advice_html(advice) if advice else "",
    )


def embedded(data: Any) -> str:
    """JSON for a script element: ASCII only, and no text of a node can end the element or open a comment in it."""
    text = json.dumps(data, separators=(",", ":"), allow_nan=False)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _asset(name: str) -> str:
    return (ASSETS / name).read_text(encoding="utf-8")


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
