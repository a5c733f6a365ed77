"""pip: Python packages, in a virtual environment or for a Python of the node."""

from __future__ import annotations

import os
import re
import shlex
import tempfile
from typing import Any, Dict, List, NamedTuple, Sequence

from nodectl.agent.contract import Args, Failed
from nodectl.agent.system import System
from nodectl.wire.outcome import Outcome
from nodectl.wire.params import Param, Spec

SPEC = Spec(
    summary="Python packages present, absent or at their newest.",
    params={
        "name": Param("list", "packages, each with a version as name==1.2 or name>=1,<2 where wished; paths and addresses too", elements="str"),
        "version": Param("str", "version of the one package that is named"),
        "requirements": Param("str", "a file of requirements on the node, instead of name"),
        "virtualenv": Param("path", "a virtual environment, made where it is missing"),
        "virtualenv_site_packages": Param("bool", "a new environment sees the system's packages", default=False),
        "virtualenv_command": Param("path", "what makes it: virtualenv, or python3 -m venv", default="virtualenv"),
        "virtualenv_python": Param("str", "the Python of a new environment (virtualenv only)"),
        "executable": Param("path", "a pip of another Python"),
        "extra_args": Param("str", "further options for pip"),
        "editable": Param("bool", "install from the sources where they lie", default=False),
        "chdir": Param("path", "folder in which pip runs"),
        "umask": Param("str", "umask for new files, in octal"),
        "break_system_packages": Param("bool", "install although the system's package manager owns this Python", default=False),
        "state": Param("str", "what is wished", default="present", choices=("present", "absent", "latest", "forcereinstall")),
    },
    required_one_of=(("name", "requirements"),),
    mutually_exclusive=(("name", "requirements"), ("executable", "virtualenv")),
    returns={
        "cmd": "pip's command", "name": "the wish", "version": "the wish", "state": "the wish", "requirements": "the wish", "virtualenv": "the wish",
        "stdout": "pip's output", "stderr": "pip's messages",
    },
    example="- pip:\n    name: torch==2.13.0\n    virtualenv: /opt/train\n    virtualenv_command: /usr/bin/python3 -m venv\n",
)
# torch with its CUDA libraries is several GB.
INSTALL_SECONDS = 3600.0
QUERY_SECONDS = 120.0
_VERBS = {"present": ["install"], "absent": ["uninstall", "-y"], "latest": ["install", "-U"], "forcereinstall": ["install", "-U", "--force-reinstall"]}
_REQUIREMENT = re.compile(r"([A-Za-z0-9][A-Za-z0-9._-]*)(?:\[[^\]]*\])?\s*((?:(?:[<>=!~]=?=?)\s*[^\s,;]+\s*,?\s*)*)(;.*)?\Z")
_CLAUSE = re.compile(r"(===|==|!=|<=|>=|~=|<|>)\s*([^\s,;]+)")


class Wanted(NamedTuple):
    """``text`` goes to pip; ``key`` is the normalised name, "" for a path or an address; ``clauses`` are (operator, version)."""

    text: str
    key: str
    clauses: "List[tuple[str, str]]"


def normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def parse(names: Sequence[str], version: "str | None") -> List[Wanted]:
    """Raises Failed for words that pip would take for options. Commas inside a list of versions are put together again, as Ansible does."""
    joined: List[str] = []
    for name in names:
        if joined and re.match(r"\s*[<>=!~]", name):
            joined[-1] += f",{name.strip()}"
        else:
            joined.append(name.strip())
    found = []
    for text in joined:
        match = _REQUIREMENT.match(text)
        if not text or text.startswith("-") or "\n" in text:
            raise Failed(f"pip: {text!r} is no package")
        clauses = _CLAUSE.findall(match.group(2)) if match else []
        found.append(Wanted(text, normal(match.group(1)) if match else "", clauses))
    if version is not None:
        if len(found) != 1 or found[0].clauses:
            raise Failed("pip: version is for one package that has no version of its own behind its name")
        clauses = _CLAUSE.findall(version) or [("==", version)]
        found = [found[0]._replace(text=found[0].text + ",".join(a + b for a, b in clauses), clauses=clauses)]
    return found


def key_of(version: str) -> "tuple[Any, ...]":
    """Order of versions as far as lists of numbers go; what follows them (rc1, .post2) makes a version earlier or later."""
    found = re.match(r"v?(?:\d+!)?((?:\d+\.)*\d+)(.*)", version)
    if found is None:
        return (0,)
    numbers = [int(part) for part in found.group(1).split(".")]
    while len(numbers) > 1 and numbers[-1] == 0:
        numbers.pop()
    rest = found.group(2).split("+")[0].lower().strip(".-_")
    return (numbers, 0 if re.match(r"(a|b|c|rc|alpha|beta|pre|dev)", rest) else 2 if rest else 1, rest)


def fits(clauses: "Sequence[tuple[str, str]]", version: str) -> bool:
    have = key_of(version)
    for operator, text in clauses:
        if text.endswith(".*"):
            inside = f"{version}.".startswith(text[:-1])
            good = inside if operator == "==" else not inside
        else:
            want = key_of(text)
            low = text.rpartition(".")[0]
            table = {
                "==": have == want, "===": version == text, "!=": have != want, "<": have < want, ">": have > want, "<=": have <= want, ">=": have >= want,
                "~=": have >= want and f"{version}.".startswith(f"{low}."),
            }
            good = table[operator]
        if not good:
            return False
    return True


def _pip(system: System, args: Args) -> List[str]:
    if args["virtualenv"]:
        return [os.path.join(_environment(args), "bin", "pip")]
    if args["executable"]:
        program = args["executable"] if "/" in args["executable"] else system.which(args["executable"])
        if program is None or not os.access(program, os.X_OK):
            raise Failed(f"pip: {args['executable']} is no program on this node")
        return [program]
    done = system.run(["/usr/bin/python3", "-m", "pip", "--version"], timeout=QUERY_SECONDS)
    if done.rc != 0:
        raise Failed("pip: this node's Python has no pip: install python3-pip, or give virtualenv or executable", rc=done.rc)
    return ["/usr/bin/python3", "-m", "pip"]


def _environment(args: Args) -> str:
    return os.path.join(args["chdir"] or "/", args["virtualenv"]) if args["chdir"] else str(args["virtualenv"])


def _missing_environment(args: Args) -> bool:
    return bool(args["virtualenv"]) and not os.path.exists(os.path.join(_environment(args), "bin", "activate"))


def _make_environment(system: System, args: Args) -> None:
    words = shlex.split(args["virtualenv_command"])
    plain = words[-1] == "venv" or os.path.basename(words[0]).startswith("pyvenv")
    words += ["--system-site-packages"] if args["virtualenv_site_packages"] else []
    if args["virtualenv_python"] and plain:
        raise Failed("pip: a venv has the Python that makes it: name that one in virtualenv_command instead of virtualenv_python")
    words += ["-p", args["virtualenv_python"]] if args["virtualenv_python"] else []
    done = system.run([*words, _environment(args)], timeout=INSTALL_SECONDS, cwd=args["chdir"] or tempfile.gettempdir())
    if done.rc != 0:
        raise Failed(f"{' '.join(words)}: {done.stderr.strip() or done.stdout.strip()}", rc=done.rc, stdout=done.stdout, stderr=done.stderr)


def _installed(system: System, pip: List[str]) -> Dict[str, str]:
    done = system.run([*pip, "list", "--format=freeze", "--disable-pip-version-check"], timeout=QUERY_SECONDS)
    if done.rc != 0:
        raise Failed(f"pip list: {done.stderr.strip()}", rc=done.rc, stderr=done.stderr)
    return {normal(name): version for name, _, version in (line.partition("==") for line in done.stdout.splitlines()) if version}


def as_wished(wanted: Sequence[Wanted], state: str, there: Dict[str, str]) -> bool:
    """Whether the list of installed packages alone says that nothing is to be done."""
    if state == "absent":
        return all(one.key and one.key not in there for one in wanted)
    return state == "present" and all(_is_so(one, state, there) for one in wanted)


def _is_so(one: Wanted, state: str, there: Dict[str, str]) -> bool:
    return one.key not in there if state == "absent" else one.key in there and fits(one.clauses, there[one.key])


def act(system: System, args: Args, check: bool) -> Outcome:
    """What is there already is not asked of an index; the rest is pip's own work, and the list says whether anything became another."""
    if args["state"] == "latest" and args["version"] is not None:
        raise Failed("pip: version and state: latest exclude each other")
    wanted = parse(args["name"] or [], args["version"])
    fresh = _missing_environment(args)
    values = {key: args[key] for key in ("name", "version", "state", "requirements")}
    values["virtualenv"] = _environment(args) if args["virtualenv"] else None
    if check and fresh:
        return Outcome(changed=True, msg=f"make the environment {_environment(args)}", values=values)
    old_umask = os.umask(_umask(args))
    try:
        if fresh:
            _make_environment(system, args)
        return _packages(system, args, check, wanted, fresh, values)
    finally:
        os.umask(old_umask)


def _umask(args: Args) -> int:
    text = args["umask"] if args["umask"] is not None else "022"
    if not re.match(r"0?[0-7]{1,4}\Z", text):
        raise Failed(f"pip: umask {text!r} is no octal number")
    return int(text, 8)


def _packages(system: System, args: Args, check: bool, wanted: List[Wanted], fresh: bool, values: Dict[str, Any]) -> Outcome:
    pip = _pip(system, args)
    there = _installed(system, pip)
    words = [*_VERBS[args["state"]], *shlex.split(args["extra_args"] or ""), *(["-e"] if args["editable"] and args["state"] != "absent" else [])]
    words += [one.text if args["state"] != "absent" else one.key or one.text for one in wanted] if wanted else ["-r", str(args["requirements"])]
    values["cmd"] = [*pip, *words]
    if wanted and as_wished(wanted, args["state"], there):
        return Outcome(changed=fresh, values=dict(values, stdout="", stderr=""))
    if check:
        return Outcome(changed=True, msg=f"pip {' '.join(words)}", values=values)
    env = {"PIP_DISABLE_PIP_VERSION_CHECK": "1", **({"PIP_BREAK_SYSTEM_PACKAGES": "1"} if args["break_system_packages"] else {})}
    done = system.run([*pip, *words], timeout=INSTALL_SECONDS, env=env, cwd=args["chdir"] or tempfile.gettempdir())
    values.update(stdout=done.stdout, stderr=done.stderr)
    if done.rc != 0:
        said = [line for line in done.stderr.splitlines() if line.lower().startswith("error")] or done.stderr.strip().splitlines()[-1:]
        raise Failed(f"pip {' '.join(words)}: {'; '.join(said[:4]) or f'exit code {done.rc}'}", rc=done.rc, **values)
    after = _installed(system, pip)
    named = [one for one in wanted if one.key]
    left = [one.text for one in named if not _is_so(one, args["state"], after)]
    if left:
        raise Failed(f"pip ended well, but these are still not as wished: {', '.join(left)}", **values)
    changed = fresh or args["state"] == "forcereinstall" or after != there or any(not one.key for one in wanted)
    return Outcome(changed=changed, msg=f"pip {' '.join(words)}", values=values)
