"""One HTTP request, with every wait bounded and the body as it comes. Shared by get_url and uri."""

from __future__ import annotations

import base64
import gzip
import http.client
import os
import ssl
import urllib.error
import urllib.parse
import urllib.request
from email.utils import formatdate
from typing import Any, BinaryIO, Dict, List, Mapping, NamedTuple, Optional, cast

from nodectl.agent.contract import Args, Failed
from nodectl.agent.system import System
from nodectl.wire.params import Param

CHUNK = 256 * 1024
UNANSWERED = -1
PARAMS: Dict[str, Param] = {
    "url": Param(required=True, help="http, https, ftp or file"),
    "force": Param("bool", default=False, help="fetch although the server says that nothing changed since"),
    "headers": Param("dict", help="headers of the request"),
    "http_agent": Param(default="ansible-httpget", help="how the client calls itself"),
    "use_proxy": Param("bool", default=True, help="use the proxy that the environment names"),
    "validate_certs": Param("bool", default=True, help="check the server's certificate"),
    "ca_path": Param("path", help="a file of authorities to trust instead of the node's own"),
    "client_cert": Param("path", help="a certificate to show, PEM"),
    "client_key": Param("path", help="its key"),
    "url_username": Param(aliases=("username", "user"), help="user for basic authentication"),
    "url_password": Param(aliases=("password",), secret=True, help="its password"),
    "force_basic_auth": Param("bool", default=False, help="send user and password unasked"),
    "decompress": Param("bool", default=True, help="unpack what comes packed by gzip"),
}


class Reply(NamedTuple):
    """What came back. ``status`` is -1 where nobody answered; ``headers`` have lower-case names; ``body`` is read to its end by the caller."""

    status: int
    msg: str
    url: str
    headers: Dict[str, str]
    body: Optional[BinaryIO] = None


def shown(url: str) -> str:
    """Without a password."""
    parts = urllib.parse.urlsplit(url)
    return parts._replace(netloc=parts.netloc.rpartition("@")[2]).geturl()


def file_name(url: str) -> str:
    """As it stands in the URL, %20 and the like included, as in Ansible."""
    return os.path.basename(urllib.parse.urlsplit(url).path) or "index.html"


def fetch(
    args: Args, url: str, method: str = "GET", data: Optional[bytes] = None, headers: Optional[Mapping[str, str]] = None,
    since: Optional[float] = None, redirects: str = "urllib2", timeout: float = 10.0,
) -> Reply:
    """``since``: seconds since 1970 of what is there; ``redirects``: all, safe (GET and HEAD), none, urllib2. ``timeout`` bounds each wait."""
    given = {**_credentials(args, url), **(headers or {}), **{str(key): str(value) for key, value in (args["headers"] or {}).items()}}
    if since is not None and not args["force"]:
        given["If-Modified-Since"] = formatdate(since, usegmt=True)
    elif args["force"]:
        given["Cache-Control"] = "no-cache"
    try:
        # file: and ftp: are meant, as in Ansible.
        request = urllib.request.Request(shown(url), data, {"User-Agent": args["http_agent"], **given}, method=method)  # noqa: S310
        return _reply(_opener(args, redirects).open(request, timeout=timeout), args)
    except urllib.error.HTTPError as error:
        return _reply(error, args)._replace(msg=str(error))
    except (OSError, http.client.HTTPException, ValueError) as error:
        return Reply(UNANSWERED, f"Request failed: {error or type(error).__name__}", shown(url), {})


def _credentials(args: Args, url: str) -> Dict[str, str]:
    """Named in the parameters, or in the URL; sent with the first request, for a second one would ask for the same."""
    parts = urllib.parse.urlsplit(url)
    user, password = args["url_username"] or parts.username, args["url_password"] or parts.password or ""
    if not user:
        return {}
    return {"Authorization": "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()}


class _Redirects(urllib.request.HTTPRedirectHandler):
    def __init__(self, which: str) -> None:
        self._which = which

    def redirect_request(self, req: Any, fp: Any, code: int, msg: str, headers: Any, newurl: str) -> Any:
        """The password goes to the server that it is for, and to no other."""
        if self._which in ("none", "no") or (self._which == "safe" and req.get_method() not in ("GET", "HEAD")):
            return None
        again = super().redirect_request(req, fp, code, msg, headers, newurl)
        if again is not None and urllib.parse.urlsplit(newurl).netloc != urllib.parse.urlsplit(req.full_url).netloc:
            again.remove_header("Authorization")
        if again is not None and self._which == "all" and code in (307, 308):
            again.data, again.method = req.data, req.get_method()
        return again


def _opener(args: Args, redirects: str) -> urllib.request.OpenerDirector:
    try:
        context = ssl.create_default_context(cafile=args["ca_path"])
        if args["client_cert"]:
            context.load_cert_chain(args["client_cert"], args["client_key"])
    except (OSError, ssl.SSLError) as error:
        raise Failed(f"ca_path, client_cert or client_key cannot be used: {error}") from None
    if not args["validate_certs"]:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    handlers: List[urllib.request.BaseHandler] = [urllib.request.HTTPSHandler(context=context), _Redirects(redirects)]
    return urllib.request.build_opener(*handlers, *([] if args["use_proxy"] else [urllib.request.ProxyHandler({})]))


def _reply(answer: Any, args: Args) -> Reply:
    headers = {key.lower(): value for key, value in answer.headers.items()}
    packed = args["decompress"] and headers.get("content-encoding") == "gzip"
    body = cast(BinaryIO, gzip.GzipFile(fileobj=answer) if packed else answer)
    length = headers.get("content-length", "unknown")
    return Reply(getattr(answer, "status", None) or getattr(answer, "code", None) or 200, f"OK ({length} bytes)", answer.geturl(), headers, body)


def save(system: System, reply: Reply, file: BinaryIO, limit: Optional[int] = None) -> int:
    """The body into ``file``; how many bytes. Raises Failed where the line broke before the end, or it is longer than ``limit``."""
    if reply.body is None:
        return 0
    total = 0
    try:
        for piece in iter(lambda: reply.body.read(CHUNK) if reply.body else b"", b""):
            system.stopper.check()
            total += len(piece)
            if limit is not None and total > limit:
                raise Failed(f"{shown(reply.url)} sent more than {limit} bytes: use dest, or get_url")
            file.write(piece)
    except (OSError, EOFError, http.client.HTTPException) as error:
        raise Failed(f"{shown(reply.url)} broke off after {total} bytes: {error or type(error).__name__}") from None
    _refuse_short(reply, total)
    return total


def _refuse_short(reply: Reply, total: int) -> None:
    said = reply.headers.get("content-length", "")
    if said.isdigit() and reply.headers.get("content-encoding") != "gzip" and total < int(said):
        raise Failed(f"{shown(reply.url)} broke off after {total} of {said} bytes")
