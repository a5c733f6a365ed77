"""junit.xml: a test case per node and check, for CI systems that show such files.

A check that could not be judged is an ``error``, never a pass; one that the user waived is ``skipped``. What became of a node besides
its checks (unreachable, a failed task, a verdict that is no check's) is a test case too, so that a file without failures is a run
without failures.
"""

from __future__ import annotations

from datetime import UTC, datetime
from xml.etree.ElementTree import Element, SubElement, indent, tostring

from nodectl.report.fold import HostSummary, Summary, waiver_text
from nodectl.report.human import printable

# Characters of one output, and of all together. CI systems keep the file in memory; events.jsonl has the whole. A check that passed has its
# reason here and no output.
OUTPUT_MOST = 8_000
OUTPUT_ALL = 4_000_000
# What a status is called where it is a test case of its own.
OUTCOMES = {"failed": "failure", "unreachable": "error", "lost": "error", "stopped": "error"}


def junit(summary: Summary) -> str:
    """The document. Suites are nodes, in the order of the inventory."""
    speaking = sum(check["verdict"] != "pass" for host in summary.hosts.values() for check in host.checks)
    most = min(OUTPUT_MOST, OUTPUT_ALL // max(1, speaking))
    root = Element("testsuites", name=_clean(f"nodectl {summary.command}".strip()))
    for name, host in summary.hosts.items():
        root.append(_suite(name, host, summary, most))
    counts = {kind: sum(int(suite.get(kind, "0")) for suite in root) for kind in ("tests", "failures", "errors")}
    root.attrib.update({**{kind: str(count) for kind, count in counts.items()}, "time": f"{summary.seconds:.3f}"})
    indent(root)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + tostring(root, encoding="unicode") + "\n"


def _suite(name: str, host: HostSummary, summary: Summary, most: int) -> Element:
    suite = Element("testsuite", name=_clean(name), hostname=_clean(name), timestamp=datetime.fromtimestamp(summary.started, UTC).strftime("%Y-%m-%dT%H:%M:%S"))
    properties = SubElement(suite, "properties")
    for key, value in (("run_id", summary.run_id), ("suite", summary.suite.get("name")), ("verdict", host.verdict), ("nodectl", summary.version)):
        if value:
            SubElement(properties, "property", name=key, value=_clean(str(value)))
    if not len(properties):
        suite.remove(properties)
    _node_case(suite, name, host, summary)
    for check in host.checks:
        _check_case(suite, name, check, most)
    for kind, tag in (("tests", "testcase"), ("failures", "testcase/failure"), ("errors", "testcase/error"), ("skipped", "testcase/skipped")):
        suite.set(kind, str(len(suite.findall(tag))))
    suite.set("time", "0")
    return suite


def _node_case(suite: Element, name: str, host: HostSummary, summary: Summary) -> None:
    """Whether the node came through at all."""
    case = SubElement(suite, "testcase", classname=_clean(name), name="node", time="0")
    if host.status != "ok":
        _say(case, OUTCOMES[host.status], host.status, host.reason or host.status, host.hint)
    elif summary.proving and host.verdict == "none":
        _say(case, "error", "none", "nothing was proven about it")
    elif host.verdict in ("fail", "unknown") and not any(check["verdict"] == host.verdict for check in host.checks):
        _say(case, "failure" if host.verdict == "fail" else "error", host.verdict, "; ".join(host.reasons) or host.verdict)


def _check_case(suite: Element, name: str, check: dict[str, object], most: int) -> None:
    case = SubElement(suite, "testcase", classname=_clean(name), name=_clean(str(check["name"])), time="0")
    reason = str(check["reason"] or "")
    source = f"source of the floor: {check['source']}" if check["source"] else ""
    if check["verdict"] == "skipped":
        waiver = check["waiver"]
        _say(case, "skipped", "", waiver_text(waiver if isinstance(waiver, dict) else {}))
    elif check["verdict"] != "pass":
        _say(case, "failure" if check["verdict"] == "fail" else "error", str(check["verdict"]), reason, source)
    raw = "" if check["verdict"] == "pass" else _cut(_clean(str(check["raw"] or "")), most)
    said = "\n".join(text for text in (_cut(_clean(reason)), source, raw) if text)
    if said:
        SubElement(case, "system-out").text = _clean(said)


def _say(case: Element, tag: str, kind: str, message: str, text: str = "") -> None:
    """Schemas let ``skipped`` carry a message and no type."""
    found = SubElement(case, tag, message=_cut(_clean(message)))
    if kind:
        found.set("type", kind)
    if text:
        found.text = _cut(_clean(text))


def _clean(text: str) -> str:
    """XML 1.0 has no place for control characters and halves of surrogate pairs, escaped or not: they become escapes that are text."""
    return printable(text).replace("\ufffe", "\\ufffe").replace("\uffff", "\\uffff")


def _cut(text: str, most: int = OUTPUT_MOST) -> str:
    if len(text) <= most:
        return text
    head, tail = most // 4, max(1, most * 3 // 4)
    return f"{text[:head]}\n… {len(text) - head - tail} characters left out …\n{text[-tail:]}"
