"""Debian packages: what is installed, what could be, what a step would do, and doing it."""

from __future__ import annotations

import os
import re
import time
from typing import Any, Dict, List, Mapping, NamedTuple, Sequence, Tuple

from nodectl.agent import dpkg_unfinished, package_locks
from nodectl.agent.contract import Args, Failed
from nodectl.agent.system import System
from nodectl.wire.outcome import Outcome

_ENVIRONMENT = {
    "DEBIAN_FRONTEND": "noninteractive", "DEBIAN_PRIORITY": "critical", "APT_LISTCHANGES_FRONTEND": "none", "NEEDRESTART_MODE": "l", "LC_ALL": "C.UTF-8",
}
# A kernel or CUDA driver package builds modules for minutes; half an hour is beyond every install seen in the field.
INSTALL_SECONDS = 1800.0
UPDATE_SECONDS = 300.0
QUERY_SECONDS = 60.0
# Pauses before trying again to fetch the lists: mirrors answer 503 for seconds when a hundred nodes ask at once.
UPDATE_PAUSES = (2.0, 5.0)
_NAME = re.compile(r"^[a-z0-9][a-z0-9+.\-]*(:[a-z0-9\-]+)?$")
_VERSION = re.compile(r"^[A-Za-z0-9.+:~\-]+$")
_STEP = re.compile(r"^(Inst|Remv|Purg|Conf) (\S+)(?: \[([^\]]+)\])?(?: \((\S+))?", re.MULTILINE)
_STAMPS = ("/var/lib/apt/periodic/update-success-stamp", "/var/lib/apt/lists")


class Wanted(NamedTuple):
    name: str
    version: str = ""

    def text(self) -> str:
        return f"{self.name}={self.version}" if self.version else self.name


class Known(NamedTuple):
    """``status`` is dpkg's ("ii", "rc", …), "" where dpkg has never seen it; ``candidate`` "" where no list offers it.

    ``listed``: some list knows the name, be it as one that other packages only provide.
    """

    version: str = ""
    status: str = ""
    candidate: str = ""
    listed: bool = False

    @property
    def installed(self) -> bool:
        return self.status[1:2] == "i"


def parse(names: Sequence[Any]) -> List[Wanted]:
    """Package names as written, with `=version`. Globs are refused: what they take in depends on the day."""
    wanted, wrong = [], []
    for name in names:
        package, _, version = str(name).strip().partition("=")
        if any(char in str(name) for char in "*?["):
            wrong.append(f"{name!r} is a pattern: name each package")
        elif not _NAME.match(package) or ("=" in str(name) and not _VERSION.match(version)):
            wrong.append(f"{name!r} is no package name (lower case; a version as name=1.2-3)")
        else:
            wanted.append(Wanted(package, version))
    if wrong:
        raise Failed("apt: " + "; ".join(wrong))
    return wanted


def known(system: System, names: Sequence[str]) -> Dict[str, Known]:
    """Status and candidate of each name."""
    if not names:
        return {}
    found = {name: Known() for name in names}
    done = system.run(["dpkg-query", "-W", "-f", "${Package}\t${Architecture}\t${Version}\t${db:Status-Abbrev}\n", *names], timeout=QUERY_SECONDS)
    for line in done.stdout.splitlines():
        package, arch, version, status = [*line.split("\t"), "", "", ""][:4]
        for name in (package, f"{package}:{arch}"):
            if name in found and not found[name].installed:
                found[name] = found[name]._replace(version=version, status=status.strip())
    for name, candidate in _candidates(system, names).items():
        found[name] = found[name]._replace(candidate=candidate, listed=True)
    return found


def _candidates(system: System, names: Sequence[str]) -> Dict[str, str]:
    """Name → candidate, "" for one that is only provided by others. A name that no list knows is not there."""
    done = system.run(["apt-cache", "policy", *names], timeout=QUERY_SECONDS)
    found: Dict[str, str] = {}
    current = ""
    for line in done.stdout.splitlines():
        if line and not line.startswith(" "):
            current = line.rstrip(":")
        elif line.strip().startswith("Candidate:") and current:
            value = line.split(":", 1)[1].strip()
            key = next((name for name in names if name == current or name.split(":")[0] == current), "")
            if key:
                found[key] = value if value != "(none)" else ""
    return found


def provided(system: System) -> Dict[str, str]:
    """Virtual name → the installed package that provides it."""
    done = system.run(["dpkg-query", "-W", "-f", "${Package}\t${db:Status-Abbrev}\t${Provides}\n"], timeout=QUERY_SECONDS)
    found = {}
    for line in done.stdout.splitlines():
        package, status, provides = [*line.split("\t"), "", ""][:3]
        if status[1:2] == "i":
            for name in provides.split(","):
                found[name.strip().split(" ")[0]] = package
    return found


def pending(system: System, wanted: Sequence[Wanted], state: str, purge: bool, only_upgrade: bool = False) -> List[Wanted]:
    """Those of ``wanted`` that are not as wished."""
    facts = known(system, [w.name for w in wanted])
    if state == "absent":
        return [w for w in wanted if facts[w.name].installed or (purge and facts[w.name].status == "rc")]
    left = [w for w in wanted if _differs(w, facts[w.name], state) and not (only_upgrade and not facts[w.name].installed)]
    if any(not facts[w.name].installed and not facts[w.name].candidate for w in left):
        virtual = provided(system)
        left = [w for w in left if w.version or facts[w.name].installed or w.name not in virtual]
    return left


def _differs(wanted: Wanted, fact: Known, state: str) -> bool:
    if not fact.installed:
        return True
    if wanted.version:
        return wanted.version != fact.version
    return state == "latest" and bool(fact.candidate) and fact.candidate != fact.version


def list_age(system: System) -> Tuple[float, int]:
    """(age of the package lists in seconds, time of their last update as seconds since the epoch); no lists = endless age."""
    times = [int(info.st_mtime) for info in (system.stat(path, follow=True) for path in _STAMPS) if info is not None]
    if not times or not _has_lists():
        return float("inf"), 0
    return max(time.time() - max(times), 0.0), max(times)


def _has_lists() -> bool:
    try:
        return any("_Packages" in name or name.endswith(("_InRelease", "_Release")) for name in os.listdir("/var/lib/apt/lists"))
    except OSError:
        return False


def update(system: System, lock_timeout: float, retries: int) -> None:
    """Fetch the package lists; a mirror that fails counts as failure, although apt-get's default is to go on with old lists."""
    argv = ["apt-get", "-q", "-y", "-o", "APT::Update::Error-Mode=any", "update"]
    done = None
    for pause in (0.0, *UPDATE_PAUSES)[: max(retries, 0) + 1]:
        system.sleep(pause)
        package_locks.wait_free(system, package_locks.LISTS, lock_timeout)
        done = system.run(argv, timeout=UPDATE_SECONDS, env=_ENVIRONMENT)
        if done.rc == 0:
            return
    if done is not None:
        raise Failed(f"apt-get update failed: {_reason(done.stderr, done.stdout)}", rc=done.rc, stdout=done.stdout, stderr=done.stderr)


def _reason(stderr: str, stdout: str) -> str:
    """The E: and W: lines, which say what happened; else the last line."""
    said = [line for line in stderr.splitlines() if line.startswith(("E:", "W:", "dpkg:"))]
    rest = (stderr.strip() or stdout.strip() or "no reason given").splitlines()
    return "; ".join(said[:5]) or rest[-1]


def options(args: Mapping[str, Any]) -> List[str]:
    """apt-get's options for a wish. Old configuration files are kept where the person has changed them."""
    # Without a pty of its own dpkg stays in our process group: a stop reaches it too, and none goes on behind the run's back.
    out = ["-y", "-q", "-o", "DPkg::Use-Pty=false", "-o", f"DPkg::Lock::Timeout={int(args['lock_timeout'])}"]
    for option in args["dpkg_options"].split(","):
        out += ["-o", f"Dpkg::Options::=--{option.strip()}"]
    if args["install_recommends"] is not None:
        out += ["-o", f"APT::Install-Recommends={'true' if args['install_recommends'] else 'false'}"]
    if args["default_release"]:
        out += ["-t", args["default_release"]]
    flags = (
        ("allow_downgrade", "--allow-downgrades"), ("allow_change_held_packages", "--allow-change-held-packages"),
        ("allow_unauthenticated", "--allow-unauthenticated"),
    )
    return out + [flag for key, flag in flags if args[key]]


def command(args: Mapping[str, Any], todo: Sequence[Wanted]) -> List[str]:
    """apt-get's words after the options, or [] when there is nothing to do."""
    if todo and args["state"] == "absent":
        return ["purge" if args["purge"] else "remove", *(["--auto-remove"] if args["autoremove"] else []), *(w.name for w in todo)]
    if todo:
        return ["install", *(["--only-upgrade"] if args["only_upgrade"] else []), *(w.text() for w in todo)]
    if args["upgrade"] != "no":
        return ["upgrade", "--with-new-pkgs"] if args["upgrade"] in ("yes", "safe") else ["dist-upgrade"]
    if args["autoremove"]:
        return ["autoremove", *(["--purge"] if args["purge"] else [])]
    return []


def simulate(system: System, args: Mapping[str, Any], words: Sequence[str]) -> List[str]:
    """What apt-get would do, as sentences; reads only. Raises Failed where it cannot be done."""
    done = system.run(["apt-get", "-s", *options(args), *words], timeout=QUERY_SECONDS, env=_ENVIRONMENT)
    if done.rc != 0:
        hint = "" if _has_lists() else " (this node has no package lists: add update_cache: true)"
        raise Failed(f"apt-get {' '.join(words)}: {_reason(done.stderr, done.stdout)}{hint}", rc=done.rc, stdout=done.stdout, stderr=done.stderr)
    steps = [match.groups() for match in _STEP.finditer(done.stdout)]
    unpacked = {name for kind, name, _, _ in steps if kind == "Inst"}
    return [_sentence(*step) for step in steps if step[0] != "Conf" or step[1] not in unpacked]


def _sentence(kind: str, name: str, old: str, new: str) -> str:
    if kind == "Conf":
        return f"configure {name}, which was unpacked earlier"
    if kind == "Inst":
        return f"upgrade {name} {old} to {new}" if old else f"install {name} {new}"
    return f"{'purge' if kind == 'Purg' else 'remove'} {name} {old}"


def act(system: System, args: Args, check: bool) -> Outcome:
    """The whole apt module: lists, wish, simulation, work, and a second look."""
    wanted = parse(args["name"])
    age, stamp = list_age(system)
    if wanted and args["upgrade"] != "no":
        raise Failed("apt: name and upgrade cannot be given together")
    todo = pending(system, wanted, args["state"], args["purge"], args["only_upgrade"])
    refresh = (args["update_cache"] or args["cache_valid_time"] > 0) and age >= max(args["cache_valid_time"], 0)
    if refresh and wanted and args["state"] != "latest" and not todo:
        refresh = False  # nothing to install: fetching the lists would change nothing that was asked for
    mended: List[str] = []
    if not check:
        mended = dpkg_unfinished.finish(system, args["lock_timeout"], bool(command(args, todo)), INSTALL_SECONDS, _ENVIRONMENT)
    before = stamp
    if refresh and not check:
        update(system, args["lock_timeout"], args["update_cache_retries"])
        stamp = list_age(system)[1]
    fetched = refresh and (check or stamp != before)  # lists in which nothing is new are no change
    values: Dict[str, Any] = {"cache_updated": fetched, "cache_update_time": stamp}
    if mended or (refresh and not check):
        todo = pending(system, wanted, args["state"], args["purge"], args["only_upgrade"])
    words = command(args, todo)
    if not words:
        alone = [*mended, *(["update the package lists"] if fetched and not wanted else [])]
        return Outcome(changed=bool(alone), msg="; ".join(alone), values=values)
    steps = [*mended, *_foretell(system, args, words, todo, unfetched=refresh and check)]
    if check or steps == mended:
        return _told(steps, values)
    return _work(system, args, wanted, words, steps, values)


def _foretell(system: System, args: Args, words: Sequence[str], todo: Sequence[Wanted], unfetched: bool) -> List[str]:
    """apt-get's simulation; where the lists would be fetched first, names alone when the old lists do not know them."""
    try:
        if args["state"] != "absent":
            _refuse_unlisted(system, todo)
        return simulate(system, args, words)
    except Failed:
        if not unfetched:
            raise
        return [f"install {w.text()} (the package lists would be fetched first)" for w in todo]


def _refuse_unlisted(system: System, todo: Sequence[Wanted]) -> None:
    """apt-get takes a name that it does not know for something else: NAME- removes, NAME+ installs NAME, and with a dot it is a pattern."""
    facts = known(system, [w.name for w in todo])
    strange = [name for name, fact in facts.items() if not fact.installed and not fact.listed]
    if strange:
        why = "are the names right, and the lists recent (update_cache: true)?" if _has_lists() else "this node has no package lists: add update_cache: true"
        raise Failed(f"apt: no package list of this node knows {', '.join(strange)}: {why}")


def _told(steps: Sequence[str], values: Dict[str, Any]) -> Outcome:
    text = "".join(f"{step}\n" for step in steps)
    diff = [{"before": "", "after": text, "before_header": "packages", "after_header": "packages"}] if steps else []
    return Outcome(changed=bool(steps), msg="; ".join(steps), values=dict(values, packages=list(steps)), diff=diff)


def _work(system: System, args: Args, wanted: Sequence[Wanted], words: Sequence[str], steps: Sequence[str], values: Dict[str, Any]) -> Outcome:
    package_locks.wait_free(system, package_locks.DPKG, args["lock_timeout"])
    system.progress("; ".join(steps)[:300])
    done = system.run(["apt-get", *options(args), *words], timeout=INSTALL_SECONDS, env=_ENVIRONMENT)
    shown = {"stdout": done.stdout, "stderr": done.stderr, "rc": done.rc}
    if done.rc != 0:
        raise Failed(f"apt-get {' '.join(words)}: {_reason(done.stderr, done.stdout)}", **dict(values, **shown))
    left = pending(system, wanted, args["state"], args["purge"], args["only_upgrade"])
    if left:
        raise Failed(f"apt-get ended well, but these are still not as wished: {', '.join(w.text() for w in left)}", **dict(values, **shown))
    outcome = _told(steps, dict(values, **shown))
    outcome.changed = True
    return outcome
