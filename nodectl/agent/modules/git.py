"""A working copy of a git repository at a wished version."""

from __future__ import annotations

import os
import re
import shlex
from typing import Dict, List, Optional

from nodectl.agent.contract import Args, Failed, State
from nodectl.agent.processes import Completed
from nodectl.agent.system import System
from nodectl.wire.outcome import Change
from nodectl.wire.params import Param, Spec

# A clone of a large repository over a slow line; a task that knows better says `timeout:`.
LIMIT = 3600.0
_COMMIT = re.compile(r"^[0-9a-f]{40}$|^[0-9a-f]{64}$")

SPEC = Spec(
    summary="See that a working copy of a git repository is there, at a branch, tag or commit",
    params={
        "repo": Param(required=True, aliases=("name",), help="where it comes from"),
        "dest": Param("path", help="the working copy; needed unless clone is false"),
        "version": Param(default="HEAD", help="a branch, a tag or a commit's full number; HEAD is the repository's own branch"),
        "remote": Param(default="origin", help="name of that repository in the copy"),
        "force": Param("bool", default=False, help="throw away what was changed in the copy"),
        "update": Param("bool", default=True, help="fetch what is new; false: an existing copy stays as it is"),
        "clone": Param("bool", default=True, help="make the copy where there is none; false: only tell the version"),
        "depth": Param("int", help="only so many commits back"),
        "bare": Param("bool", default=False, help="a copy without files"),
        "recursive": Param("bool", default=True, help="its submodules too"),
        "single_branch": Param("bool", default=False, help="only that branch"),
        "refspec": Param(help="what is fetched beside"),
        "key_file": Param("path", help="the SSH key to use"),
        "ssh_opts": Param(help="further options for ssh"),
        "accept_newhostkey": Param("bool", default=False, help="accept the key of a host that is not known yet"),
        "executable": Param("path", help="another git"),
        "umask": Param("raw", help="for what is made, octal in quotes"),
    },
    returns={"before": "commit before, or null", "after": "commit after", "remote_url_changed": "whether the copy came from elsewhere"},
    example="- git: {repo: 'https://github.com/NVIDIA/nccl-tests', dest: /opt/nccl-tests, version: v2.13.10}\n",
)


def _git(system: System, args: Args, argv: List[str], cwd: str = "", check: bool = True) -> Completed:
    """It may never ask: nobody is there to answer."""
    command = [args["executable"] or "git", *argv]
    if args["umask"] is not None:
        command = ["/bin/sh", "-c", f"umask {_umask(args)}; exec \"$@\"", "sh", *command]
    done = system.run(command, timeout=LIMIT, cwd=cwd, env={"GIT_TERMINAL_PROMPT": "0", **_ssh(args)})
    if check and done.rc != 0:
        msg = f"git {argv[0]}: {done.stderr.strip() or done.stdout.strip()}"
        raise Failed(msg, rc=done.rc, stdout=done.stdout, stderr=done.stderr, cmd=shlex.join(command))
    return done


def _umask(args: Args) -> str:
    if not isinstance(args["umask"], str) or not re.fullmatch("[0-7]{1,4}", args["umask"]):
        raise Failed("umask must be defined as a quoted octal integer")
    return str(args["umask"])


def _ssh(args: Args) -> Dict[str, str]:
    """A host key that is not known is refused, never asked for."""
    words = ["ssh", "-o", "BatchMode=yes", *(["-i", args["key_file"], "-o", "IdentitiesOnly=yes"] if args["key_file"] else [])]
    words += ["-o", "StrictHostKeyChecking=accept-new"] if args["accept_newhostkey"] else []
    return {"GIT_SSH_COMMAND": f"{shlex.join(words)} {args['ssh_opts'] or ''}".strip()}


def read(system: System, args: Args) -> State:
    if not args["dest"] and args["clone"]:
        raise Failed("the destination directory must be specified unless clone=no")
    dest = os.path.abspath(os.path.expanduser(args["dest"])) if args["dest"] else ""
    repo = os.path.expanduser(args["repo"])
    repo = f"file://{repo}" if repo.startswith("/") else repo
    state: State = {"dest": dest, "repo": repo, "before": None, "url": None, "modified": False, "submodules": False}
    state["there"] = bool(dest) and os.path.exists(os.path.join(dest, "config" if args["bare"] else ".git"))
    if state["there"]:
        state["before"] = _git(system, args, ["rev-parse", "HEAD"], dest).stdout.strip()
        state["url"] = _git(system, args, ["ls-remote", "--get-url", args["remote"]], dest).stdout.strip()
        state["modified"] = not args["bare"] and bool(_git(system, args, ["status", "--porcelain", "--untracked-files=no"], dest).stdout.strip())
        state["submodules"] = args["recursive"] and not args["bare"] and _submodules_behind(system, args, dest)
    elif dest and args["clone"] and os.path.isdir(dest) and os.listdir(dest):
        raise Failed(f"{dest} is not empty and no working copy of git: nothing was cloned into it")
    state["wished"] = state["before"] if state["there"] and not args["update"] else _wished(system, args, state)
    return state


def _submodules_behind(system: System, args: Args, dest: str) -> bool:
    if not os.path.exists(os.path.join(dest, ".gitmodules")):
        return False
    return any(not line.startswith(" ") for line in _git(system, args, ["submodule", "status", "--recursive"], dest).stdout.splitlines())


def _wished(system: System, args: Args, state: State) -> str:
    """The commit that ``version`` is in the repository now."""
    version = args["version"]
    if version == "HEAD" and state["there"]:
        version = _own_branch(system, args, state) or version
    listed = _git(system, args, ["ls-remote", state["repo"]]).stdout.splitlines()
    refs = {name: number for number, _, name in (line.partition("\t") for line in listed)}
    for name in ("HEAD",) if version == "HEAD" else (f"refs/heads/{version}", f"refs/tags/{version}^{{}}", f"refs/tags/{version}", version):
        if name in refs:
            return str(refs[name])
    if _COMMIT.match(version):
        return str(version)
    raise Failed(f"Could not determine remote revision for {version}: {state['repo']} has no such branch or tag, and a commit is named by its full number")


def _own_branch(system: System, args: Args, state: State) -> Optional[str]:
    """As Ansible: HEAD of an existing copy is the branch that it is on."""
    done = _git(system, args, ["symbolic-ref", "--quiet", "--short", "HEAD"], state["dest"], check=False)
    return done.stdout.strip() or None


def diff(args: Args, state: State) -> Change:
    dest, before, wished = state["dest"], state["before"], state["wished"]
    data = {"before": before, "moved": state["there"] and args["update"] and _plain(state["url"]) != _plain(state["repo"])}
    if not state["there"] and not args["clone"]:
        return Change(data=data)  # only told, nothing is wished
    if state["there"] and not args["update"]:
        return Change(data=data)
    if state["modified"] and not args["force"]:
        raise Failed(f"Local modifications exist in the destination: {dest} (force=no).", before=before)
    actions = [] if before == wished else [f"clone {state['repo']} into {dest}" if not state["there"] else f"bring {dest} to {wished}"]
    actions += [f"let {dest} come from {state['repo']}"] if data["moved"] else []
    actions += [f"throw away what was changed in {dest}"] if state["modified"] else []
    actions += [f"bring the submodules of {dest} to what it says"] if state["submodules"] else []
    return Change(actions, f"{before}\n" if before else "", f"{wished}\n", dest, state["repo"], data)


def _plain(url: Optional[str]) -> str:
    return (url or "").replace("file://", "", 1).rstrip("/")


def write(system: System, args: Args, state: State, change: Change) -> None:
    dest = state["dest"]
    if not state["there"]:
        _clone(system, args, state)
    else:
        _git(system, args, ["remote", "set-url", args["remote"], state["repo"]], dest)
        _fetch(system, args, state)
    if not args["bare"]:
        _switch(system, args, state)
        if args["recursive"] and os.path.exists(os.path.join(dest, ".gitmodules")):
            _git(system, args, ["submodule", "sync", "--recursive"], dest)
            _git(system, args, ["submodule", "update", "--init", "--recursive", *(["--force"] if args["force"] else [])], dest)


def _clone(system: System, args: Args, state: State) -> None:
    os.makedirs(os.path.dirname(state["dest"]), exist_ok=True)
    named = args["version"] != "HEAD" and not _COMMIT.match(args["version"])
    depth = ["--depth", str(args["depth"])] if args["depth"] and not _COMMIT.match(args["version"]) else []
    branch = ["--branch", args["version"]] if named and not args["bare"] else []
    single = ["--single-branch"] if args["single_branch"] else []
    kind = ["--bare"] if args["bare"] else ["--origin", args["remote"]]
    _git(system, args, ["clone", *kind, *depth, *branch, *single, state["repo"], state["dest"]])
    if args["bare"] and args["remote"] != "origin":
        _git(system, args, ["remote", "add", args["remote"], state["repo"]], state["dest"])
    if args["refspec"]:
        _git(system, args, ["fetch", args["remote"], args["refspec"]], state["dest"])


def _fetch(system: System, args: Args, state: State) -> None:
    depth = ["--depth", str(args["depth"])] if args["depth"] else []
    force = ["--force"] if args["force"] else []
    specs = ["+refs/heads/*:refs/heads/*", "+refs/tags/*:refs/tags/*"] if args["bare"] else [f"+refs/heads/*:refs/remotes/{args['remote']}/*"]
    _git(system, args, ["fetch", "--tags", *depth, *force, args["remote"], *specs, *([args["refspec"]] if args["refspec"] else [])], state["dest"])


def _switch(system: System, args: Args, state: State) -> None:
    """A branch follows the repository's; a tag or a commit is checked out as it is."""
    dest, version = state["dest"], args["version"]
    if args["force"]:
        _git(system, args, ["reset", "--hard", "HEAD"], dest)
    branch = _own_branch(system, args, state) if version == "HEAD" else version
    upstream = f"{args['remote']}/{branch}"
    if branch and _git(system, args, ["rev-parse", "--verify", "--quiet", f"refs/remotes/{upstream}"], dest, check=False).rc == 0:
        here = _git(system, args, ["rev-parse", "--verify", "--quiet", f"refs/heads/{branch}"], dest, check=False).rc == 0
        _git(system, args, ["checkout", "--force", *([branch] if here else ["--track", "-b", branch, upstream])], dest)
        _git(system, args, ["reset", "--hard", upstream, "--"], dest)
    else:
        _git(system, args, ["checkout", "--force", state["wished"] if version == "HEAD" else version], dest)


def values(args: Args, state: State, change: Change) -> Args:
    after = state["before"] if state["there"] else state["wished"]
    if change and state["there"]:
        after = state["wished"]
    moved = {"remote_url_changed": change.data["moved"]} if state["there"] and args["update"] and change.data["before"] is not None else {}
    return {"before": change.data["before"], "after": after, **moved}
