"""RPM packages through rpm and dnf: what is installed, what dnf would do, and doing it."""

from __future__ import annotations

import re
from typing import Any, Dict, List, Mapping, NamedTuple, Sequence, Tuple

from nodectl.agent.contract import Failed
from nodectl.agent.system import System
from nodectl.wire.outcome import Outcome

QUERY_SECONDS = 120.0
INSTALL_SECONDS = 1800.0  # as long as apt's: driver packages build modules
# A name, name-version, glob-free; @group; a path or address of a package.
_NAME = re.compile(r"^(@?[\w][\w.+:~^()/ -]*|/[^\n]+\.rpm|https?://\S+\.rpm)\Z")
_OPTIONS: Tuple[Tuple[str, str], ...] = (
    ("allowerasing", "--allowerasing"), ("best", "--best"), ("nobest", "--nobest"), ("bugfix", "--bugfix"), ("security", "--security"),
    ("cacheonly", "--cacheonly"), ("disable_gpg_check", "--nogpgcheck"), ("download_only", "--downloadonly"), ("skip_broken", "--skip-broken"),
)
# dnf takes the repositories in their order: all off, then one on.
_VALUES = (
    ("conf_file", "--config="), ("disable_excludes", "--disableexcludes="), ("download_dir", "--downloaddir="), ("releasever", "--releasever="),
    ("disablerepo", "--disablerepo="), ("enablerepo", "--enablerepo="), ("enable_plugin", "--enableplugin="), ("disable_plugin", "--disableplugin="),
    ("exclude", "--exclude="),
)
# dnf's headings of what it would do → the words of Ansible's results.
_DONE = {
    "Installing": "Installed", "Upgrading": "Installed", "Downgrading": "Installed", "Reinstalling": "Installed", "Removing": "Removed",
}
_ROW = re.compile(r"^ (\S+)\s+(\S+)\s+(\S+)\s+(\S+)\s+[\d.]+ ?[kMG]?\s*$", re.MULTILINE)


class Names(NamedTuple):
    """Package names that rpm answers for by itself, and what only dnf can resolve."""

    plain: List[str]
    others: List[str]


def parse(names: Sequence[Any]) -> Names:
    """Raises Failed for words that dnf would take for an option or a pattern."""
    texts = [str(name).strip() for name in names]
    wrong = [repr(text) for text in texts if text != "*" and (not _NAME.match(text) or any(char in text for char in "*?["))]
    if wrong:
        raise Failed(f"dnf: {', '.join(wrong)} is no package name")
    plain = [text for text in texts if not text.startswith(("@", "/", "http")) and text != "*" and " " not in text]
    return Names(plain, [text for text in texts if text not in plain])


def installed(system: System, name: str) -> bool:
    return system.run(["rpm", "-q", "--whatprovides", name], timeout=QUERY_SECONDS).rc == 0 or system.run(["rpm", "-q", name], timeout=QUERY_SECONDS).rc == 0


def _all(system: System) -> List[str]:
    done = system.run(["rpm", "-qa", "--qf", "%{NAME}-%{VERSION}-%{RELEASE}.%{ARCH}\n"], timeout=QUERY_SECONDS)
    return sorted(done.stdout.split())


def _words(args: Mapping[str, Any]) -> List[str]:
    """dnf's options for the wish."""
    words = [flag for key, flag in _OPTIONS if args.get(key)]
    for key, flag in _VALUES:
        value = args.get(key)
        words += [flag + ",".join(value)] if isinstance(value, list) and value else [flag + value] if isinstance(value, str) and value else []
    if args.get("installroot", "/") != "/":
        words.append(f"--installroot={args['installroot']}")
    if not args.get("install_weak_deps", True):
        words.append("--setopt=install_weak_deps=False")
    if not args.get("autoremove"):  # as Ansible: dependencies stay unless asked for
        words.append("--noautoremove")
    return words


def orders(system: System, args: Mapping[str, Any], names: Names, state: str) -> List[List[str]]:
    """dnf's verbs, each with its names, for what is not as wished already; [] where rpm says that all is."""
    given = [*names.plain, *names.others]
    if state == "absent":
        here = [name for name in names.plain if installed(system, name)] + names.others
        return [["remove", *here]] if here else [["autoremove"]] if args.get("autoremove") and not given else []
    if "*" in given:
        return [["upgrade"]]
    if state == "latest":
        upgrade = [name for name in names.plain if installed(system, name)]
        fresh = [] if args.get("update_only") else [name for name in given if name not in upgrade]
        return [[verb, *some] for verb, some in (("install", fresh), ("upgrade", upgrade)) if some]
    missing = [name for name in given if name in names.others or not installed(system, name)]
    return [["install", *missing]] if missing else []


def foretell(system: System, args: Mapping[str, Any], words: Sequence[str]) -> List[str]:
    """What dnf would do, in the words of Ansible's results. Raises Failed where it cannot be done."""
    done = system.run(["dnf", *_words(args), "--assumeno", *words], timeout=QUERY_SECONDS)
    steps = parse_plan(done.stdout)
    if done.rc != 0 and not steps:
        raise Failed(f"dnf {' '.join(words)}: {_reason(done.stderr, done.stdout)}", rc=done.rc, stdout=done.stdout, stderr=done.stderr, results=[])
    return steps


def parse_plan(text: str) -> List[str]:
    """The table under each heading of a transaction as "Installed: name-version-release.arch"."""
    steps: List[str] = []
    word = ""
    for part in re.split(r"^(?=[A-Z][a-z]+[^\n]*:\s*$)", text, flags=re.MULTILINE):
        word = _DONE.get(part.split(" ")[0].split(":")[0].strip(), "")
        steps += [f"{word}: {_nevra(*row[:3])}" for row in _ROW.findall(part)] if word else []
    return steps


def _nevra(name: str, arch: str, version: str) -> str:
    return f"{name}-{version.split(':')[-1]}.{arch}"


def _reason(stderr: str, stdout: str) -> str:
    said = [line for line in (stderr + "\n" + stdout).splitlines() if line.startswith(("Error", " Problem", "No match", "Unable to find", "  - "))]
    return "; ".join(line.strip() for line in said[:6]) or (stderr.strip() or stdout.strip() or "no reason given").splitlines()[-1]


def act(system: System, args: Mapping[str, Any], state: str, check: bool) -> Outcome:
    """Look, foretell, work, and look again."""
    names = parse(args["name"])
    if args.get("update_cache") and not check:
        done = system.run(["dnf", "-y", *_words(args), "makecache", "--refresh"], timeout=INSTALL_SECONDS)
        if done.rc != 0:
            raise Failed(f"dnf makecache: {_reason(done.stderr, done.stdout)}", rc=done.rc)
    todo = orders(system, args, names, state)
    steps = [step for words in todo for step in foretell(system, args, words)]
    values: Dict[str, Any] = {"rc": 0, "results": steps, "packages": steps}
    if not steps:
        return Outcome(msg="Nothing to do", values=dict(values, results=[]))
    text = "".join(f"{step}\n" for step in steps)
    diff = [{"before": "", "after": text, "before_header": "packages", "after_header": "packages"}]
    if not check:
        values = _work(system, args, todo, names, state)
    return Outcome(changed=True, msg="; ".join(steps), values=values, diff=diff)


def _work(system: System, args: Mapping[str, Any], todo: Sequence[Sequence[str]], names: Names, state: str) -> Dict[str, Any]:
    before = _all(system)
    for words in todo:
        done = system.run(["dnf", "-y", *_words(args), *words], timeout=INSTALL_SECONDS)
        if done.rc != 0:
            break
    after = _all(system)
    results = [f"Installed: {one}" for one in after if one not in before] + [f"Removed: {one}" for one in before if one not in after]
    values: Dict[str, Any] = {"rc": done.rc, "results": results, "packages": results, "stdout": done.stdout, "stderr": done.stderr}
    if done.rc != 0:
        raise Failed(f"dnf {' '.join(words)}: {_reason(done.stderr, done.stdout)}", **values)
    left = [] if args.get("download_only") else [name for name in names.plain if installed(system, name) == (state == "absent")]
    if left and not args.get("update_only"):
        raise Failed(f"dnf ended well, but these are still not as wished: {', '.join(left)}", **values)
    return values
