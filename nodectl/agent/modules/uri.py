"""One request to a server: its answer is the result."""

from __future__ import annotations

import io
import json
import os
import re
import time
import urllib.parse
from typing import Any, Dict, Iterator, Optional, Tuple

from nodectl.agent import attributes, replace, web
from nodectl.agent.contract import Args, Failed
from nodectl.agent.system import System
from nodectl.wire.outcome import Outcome
from nodectl.wire.params import Param, Spec

# What is kept of an answer in memory; JSON escapes can make it longer, and a frame holds 64 MiB.
LIMIT = 8 * 1024 * 1024
TYPES = {"json": "application/json", "form-urlencoded": "application/x-www-form-urlencoded"}

SPEC = Spec(
    summary="Send a request to a server, and take its answer",
    params={
        **web.PARAMS,
        "method": Param(default="GET", help="GET, POST and the like"),
        "body": Param("raw", help="what is sent; a mapping or list with body_format"),
        "body_format": Param(default="raw", choices=("form-urlencoded", "json", "raw"), help="how body is written"),
        "src": Param("path", help="a file that is sent in place of body; on the controller, on the node with remote_src"),
        "remote_src": Param("bool", default=False, help="src is on the node"),
        "content_blob": Param(help="set by nodectl: name of the bytes that came with the step"),
        "dest": Param("path", help="a file that takes the answer"),
        "return_content": Param("bool", default=False, help="return the answer's text"),
        "status_code": Param("list", default=[200], elements="int", help="answers that are no failure"),
        "follow_redirects": Param(default="safe", choices=("all", "no", "none", "safe", "urllib2", "yes"), help="redirects to follow; safe: of GET, HEAD"),
        "timeout": Param("int", default=30, help="seconds that each answer may take"),
        "creates": Param("path", help="a path; when it is there, nothing is sent"),
        "removes": Param("path", help="a path; when it is not there, nothing is sent"),
        **attributes.PARAMS,
    },
    mutually_exclusive=(("body", "src"),),
    returns={
        "status": "the answer's number", "url": "where it came from in the end", "redirected": "whether that is another place", "msg": "the answer's text",
        "content": "the answer", "json": "the answer, where it is JSON", "path": "dest", "elapsed": "seconds",
        "content_type": "and the other headers, in small letters with _",
    },
    example="- uri: {url: 'http://127.0.0.1:9400/metrics', return_content: true}\n  register: dcgm\n",
)


def act(system: System, args: Args, check: bool) -> Outcome:
    needless = _needless(args)
    if needless:
        return Outcome(values={"stdout": f"skipped, since '{needless}"})
    if check:
        return Outcome(skipped=True, msg="what a server answers is not known before it is asked: skipped in check mode")
    method = args["method"].upper()
    if not re.fullmatch("[A-Z]+", method):
        raise Failed("Parameter 'method' needs to be a single word in uppercase, like GET or POST.")
    began = time.monotonic()
    dest: Optional[str] = os.path.expanduser(args["dest"]) if args["dest"] else None
    since = os.stat(dest).st_mtime if dest and os.path.isfile(dest) else None
    redirects = "all" if args["follow_redirects"] == "yes" else str(args["follow_redirects"])
    data, headers = _body(system, args)
    reply = web.fetch(args, args["url"], method, data, headers, since, redirects, args["timeout"])
    return _outcome(system, args, reply, dest, int(time.monotonic() - began))


def _needless(args: Args) -> str:
    if args["creates"] and os.path.exists(args["creates"]):
        return f"{args['creates']}' exists"
    if args["removes"] and not os.path.exists(args["removes"]):
        return f"{args['removes']}' does not exist"
    return ""


def _body(system: System, args: Args) -> Tuple[Optional[bytes], Dict[str, str]]:
    """(what is sent, its headers)."""
    if args["content_blob"]:
        return system.blob(args["content_blob"]).read(), {}
    if args["src"]:
        data = system.read(args["src"])
        if data is None:
            raise Failed(f"Unable to open source file {args['src']}")
        return data, {}
    body, form = args["body"], args["body_format"]
    headers = {"Content-Type": TYPES[form]} if form in TYPES else {}
    if body is None and form != "json":
        return None, headers
    if not isinstance(body, str):
        body = json.dumps(body) if form == "json" else urllib.parse.urlencode(list(_pairs(body))) if form != "raw" else str(body)
    return body.encode("utf-8", "surrogateescape"), headers


def _pairs(body: Any) -> Iterator[Tuple[str, str]]:
    if not isinstance(body, (dict, list)):
        raise Failed(f"failed to parse body as form_urlencoded: a mapping or a list of pairs is wanted, not {body!r}")
    for pair in body.items() if isinstance(body, dict) else body:
        if not isinstance(pair, (list, tuple)) or len(pair) != 2:
            raise Failed(f"failed to parse body as form_urlencoded: {pair!r} is no pair")
        for value in pair[1] if isinstance(pair[1], list) else [pair[1]]:
            if value is not None:
                yield str(pair[0]), str(value)


def _outcome(system: System, args: Args, reply: web.Reply, dest: Optional[str], elapsed: int) -> Outcome:
    content = io.BytesIO()
    web.save(system, reply, content, LIMIT)
    values: Dict[str, Any] = {name.replace("-", "_"): value for name, value in reply.headers.items()}
    if "location" in values:
        values["location"] = urllib.parse.urljoin(web.shown(args["url"]), values["location"])
    url = web.shown(reply.url)
    values.update(status=reply.status, url=url, redirected=url != web.shown(args["url"]), elapsed=elapsed, **_parsed(reply, content.getvalue()))
    expected = reply.status in args["status_code"]
    if args["return_content"]:
        values["content"] = _text(reply, content.getvalue())
    if not expected:
        return Outcome(failed=True, msg=f"Status code was {reply.status} and not {args['status_code']}: {reply.msg}", values=values)
    try:
        changed = dest is not None and _saved(system, args, dest, reply, content, values)
    except Failed as failed:
        raise Failed(failed.msg, **{**failed.values, **values}) from None
    return Outcome(changed=changed, msg=reply.msg, values=values)


def _text(reply: web.Reply, content: bytes) -> str:
    found = re.search(r"charset=\"?([\w-]+)", reply.headers.get("content-type", ""))
    try:
        return content.decode(found.group(1) if found else "utf-8", "replace")
    except LookupError:
        return content.decode("utf-8", "replace")


def _parsed(reply: web.Reply, content: bytes) -> Dict[str, Any]:
    kind = reply.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind.partition("/")[2].rpartition("+")[2] not in ("json", "javascript"):
        return {}
    try:
        return {"json": json.loads(_text(reply, content))}
    except ValueError:
        return {}


def _saved(system: System, args: Args, dest: str, reply: web.Reply, content: io.BytesIO, values: Dict[str, Any]) -> bool:
    place = os.path.join(dest, web.file_name(reply.url)) if os.path.isdir(dest) else dest
    values["path"] = place
    if reply.status == 304:
        return False
    there, ids = attributes.look(system.stat(place, follow=True)), attributes.wished(args)
    if there["kind"] == "file" and replace.sha1_of(place) == replace.sha1(content):
        attributes.apply(os.path.realpath(place), args, ids)
    else:
        replace.put(system, place, content, args, ids, there)
    values.update(attributes.returned(place, attributes.look(os.stat(place))))
    return True  # as in Ansible: the answer was written, whatever was there before
