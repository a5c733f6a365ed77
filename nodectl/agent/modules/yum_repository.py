"""yum_repository: one repository in a .repo file, as dnf reads it."""

from __future__ import annotations

import configparser
import io
import os
from typing import Any, Dict, Optional

from nodectl.agent import attributes, text_file
from nodectl.agent.contract import Args, Failed, State
from nodectl.agent.system import System
from nodectl.wire.outcome import Change
from nodectl.wire.params import Param, Spec

_PLAIN = (
    "bandwidth", "cost", "deltarpm_metadata_percentage", "deltarpm_percentage", "gpgcakey", "include", "metadata_expire", "metalink", "mirrorlist",
    "mirrorlist_expire", "priority", "proxy", "proxy_username", "retries", "throttle", "timeout", "ui_repoid_vars", "username",
)
_FLAGS = (
    "async", "countme", "enabled", "enablegroups", "gpgcheck", "keepalive", "module_hotfixes", "protect", "repo_gpgcheck", "s3_enabled", "skip_if_unavailable",
    "ssl_check_cert_permissions",
)
SPEC = Spec(
    summary="A repository of rpm packages present (its section written anew) or absent.",
    params={
        "name": Param("str", "the repository's id: the section's name", required=True),
        "description": Param("str", "the repository's name, as dnf shows it"),
        "baseurl": Param("list", "where it is", elements="str"),
        "gpgkey": Param("list", "where its keys are", elements="str"),
        "exclude": Param("list", "packages that are left out", elements="str", aliases=("excludepkgs",)),
        "includepkgs": Param("list", "the only packages that are taken", elements="str"),
        **{name: Param("str", f"{name} of dnf.conf(5)") for name in _PLAIN},
        **{name: Param("bool", f"{name} of dnf.conf(5)") for name in _FLAGS},
        "failovermethod": Param("str", "order of the addresses", choices=("roundrobin", "priority")),
        "http_caching": Param("str", "what a proxy may keep", choices=("all", "packages", "none")),
        "ip_resolve": Param("str", "which addresses of a name", choices=("4", "6", "IPv4", "IPv6", "whatever")),
        "keepcache": Param("str", "whether packages are kept", choices=("0", "1")),
        "metadata_expire_filter": Param("str", "when metadata is old", choices=("never", "read-only:past", "read-only:present", "read-only:future")),
        "password": Param("str", "password of the repository", secret=True),
        "proxy_password": Param("str", "password of the proxy", secret=True),
        "sslcacert": Param("str", "file of certificates", aliases=("ca_cert",)),
        "sslclientcert": Param("str", "own certificate", aliases=("client_cert",)),
        "sslclientkey": Param("str", "own key", aliases=("client_key",)),
        "sslverify": Param("bool", "whether certificates are verified", aliases=("validate_certs",)),
        "file": Param("str", "name of the file without .repo; not given: the id"),
        "reposdir": Param("path", "folder of the files", default="/etc/yum.repos.d"),
        "state": Param("str", "what is wished", default="present", choices=("present", "absent")),
        **attributes.PARAMS,
    },
    returns={"repo": "the id", "state": "the wish"},
    example="- yum_repository:\n    name: epel\n    description: EPEL\n    baseurl: https://mirror.example.org/epel/9/x86_64\n    gpgcheck: true\n",
)
_NO_OPTION = ("name", "file", "reposdir", "state", *attributes.PARAMS)
_LISTS = {"baseurl": "\n", "gpgkey": "\n", "exclude": " ", "includepkgs": " "}


def path_of(args: Args) -> str:
    name = args["file"] if args["file"] is not None else args["name"]
    if "/" in name or name in ("", ".", ".."):
        raise Failed(f"{name!r} is no name of a file")
    return os.path.join(args["reposdir"], f"{name}.repo")


def options(args: Args) -> Dict[str, str]:
    """The section's lines: key → value."""
    found: Dict[str, str] = {}
    for key, value in args.items():
        if value is None or key in _NO_OPTION:
            continue
        if isinstance(value, list):
            value = _LISTS[key].join(value)
        found["name" if key == "description" else key] = str(int(value)) if isinstance(value, bool) else value
        if any(char in found["name" if key == "description" else key] for char in ("\0", "\r")):
            raise Failed(f"{key} holds a character that no .repo file can")
    return found


def _parsed(text: str, path: str) -> configparser.RawConfigParser:
    parser = configparser.RawConfigParser()
    try:
        parser.read_string(text)
    except configparser.Error as error:
        raise Failed(f"{path} is no .repo file: {' '.join(str(error).split())}") from None
    return parser


def wished(args: Args, old: Optional[str], path: str) -> Optional[str]:
    """The whole file; None where no repository is left. The old text itself where the section says the same already."""
    parser = _parsed(old or "", path)
    name = args["name"]
    if args["state"] == "absent":
        if not parser.remove_section(name):
            return old
    else:
        wish = options(args)
        if parser.has_section(name) and dict(parser.items(name)) == wish:
            return old
        parser.remove_section(name)
        parser.add_section(name)
        for key in sorted(wish):
            parser.set(name, key, wish[key])
    if not parser.sections():
        return None
    out = io.StringIO()
    parser.write(out)
    return out.getvalue()


def read(system: System, args: Args) -> State:
    if args["state"] == "present" and not any(args[key] for key in ("baseurl", "mirrorlist", "metalink")):
        raise Failed("yum_repository: a repository needs one of baseurl, mirrorlist, metalink")
    if args["state"] == "present" and args["description"] is None:
        raise Failed("yum_repository: a repository needs a description")
    if not os.path.isdir(args["reposdir"]):
        raise Failed(f"there is no folder {args['reposdir']} on this node (is dnf installed?)")
    path = path_of(args)
    return {"path": path, "text": text_file.read(system, path), "there": attributes.look(system.stat(path, follow=True)), "ids": attributes.wished(args)}


def diff(args: Args, state: State) -> Change:
    if not args["name"] or set(args["name"]) & set("[]\n"):
        raise Failed(f"{args['name']!r} is no id of a repository")
    path = state["path"]
    change = text_file.change(path, state["text"], wished(args, state["text"], path))
    after = change.data.get("after", state["text"])
    if after is not None and (state["there"]["kind"] == "file" or args["owner"] or args["group"] or args["mode"]):
        there = state["there"] if state["there"]["kind"] == "file" else {"kind": "file", "uid": 0, "gid": 0, "mode": 0o644}
        change.actions += attributes.differences(path, args, state["ids"], there)
    change.data["after"] = after
    return change


def write(system: System, args: Args, state: State, change: Change) -> None:
    text_file.put(system, state["path"], change.data["after"])
    if change.data["after"] is not None:
        attributes.apply(state["path"], args, state["ids"])


def values(args: Args, state: State, change: Change) -> Dict[str, Any]:
    return {"repo": args["name"], "state": args["state"]}
