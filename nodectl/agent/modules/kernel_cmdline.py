"""kernel_cmdline: arguments of the kernel in the boot loader's own files (GRUB, systemd-boot and other entries), and whether a reboot is needed."""

from __future__ import annotations

import glob
import os
import re
from typing import Any, Dict, List, Sequence

from nodectl.agent.contract import Args, Failed, State
from nodectl.agent.system import System
from nodectl.wire.outcome import Change
from nodectl.wire.params import Param, Spec

SPEC = Spec(
    summary="Put arguments on the kernel's command line, for the next boot; says whether a reboot is needed.",
    params={
        "present": Param("list", "arguments that shall be there (name or name=value); other values of the same name go", default=[]),
        "absent": Param("list", "arguments that shall not be there: name=value, or a name for all its values", default=[]),
    },
    required_one_of=(("present", "absent"),),
    returns={
        "reboot_needed": "whether the running kernel was started otherwise", "missing": "what the running kernel lacks, or has too much",
        "files": "the boot loader's files that hold the line; empty where there are none (a container, a boot over the network)", "running": "/proc/cmdline",
    },
    example="- kernel_cmdline:\n    present: [iommu=pt]\n  register: line\n",
)
GRUB_DEFAULT = "/etc/default/grub"
FUTURE = "/etc/kernel/cmdline"  # kernel-install takes it for kernels to come
ENTRIES = ("/boot/loader/entries/*.conf", "/efi/loader/entries/*.conf", "/boot/efi/loader/entries/*.conf")
# (the menu that was generated, the program that generates it), Debian's way first.
MENUS = (("/boot/grub/grub.cfg", ("update-grub",)), ("/boot/grub2/grub.cfg", ("grub2-mkconfig", "-o", "/boot/grub2/grub.cfg")))
# os-prober asks each disk; under emulation it took 38 s, and a node with 24 disks is slower.
MENU_SECONDS = 300.0
# GRUB's file is a shell script: what could mean anything there is refused.
_WISH = re.compile(r"^[A-Za-z0-9_][A-Za-z0-9_.\-]*(=[A-Za-z0-9_.,:;/@%+=\-]*)?$")
_WORD = re.compile(r'(?:[^\s"]|"[^"]*")+')
_GRUB = re.compile(r"""^(\s*(?:export\s+)?GRUB_CMDLINE_LINUX(_DEFAULT)?=)("(?:[^"\\]|\\.)*"|'[^']*'|[^\s"'#;]*)(\s*(?:#.*)?)$""")
_OPTIONS = re.compile(r"^(options\s+)(.*)$", re.MULTILINE)
# Names that may stand there several times, each meaning something.
_REPEATED = ("console", "earlycon")


def name_of(word: str) -> str:
    """The kernel takes - and _ in names for the same."""
    return word.split("=", 1)[0].replace("-", "_")


def edited(line: str, present: Sequence[str], absent: Sequence[str]) -> str:
    """``line`` as wished; byte for byte the same where it is so already."""
    if not missing(line, present, absent):
        return line
    replaced = {name_of(word) for word in present} - set(_REPEATED)
    kept = [word for word in _WORD.findall(line) if name_of(word) not in replaced and word not in present and not _unwanted(word, absent)]
    return " ".join([*kept, *present])


def missing(line: str, present: Sequence[str], absent: Sequence[str]) -> List[str]:
    """What is not as wished, one sentence each."""
    words = _WORD.findall(line)
    names = {name_of(word) for word in present}
    found = [word for word in words if name_of(word) in names and name_of(word) not in _REPEATED]
    wished = [word for word in present if name_of(word) not in _REPEATED]
    lacks = [word for word in present if word not in words]
    wrong = [word for word in found if word not in present]
    order = [" ".join(wished)] if not lacks and not wrong and list(dict.fromkeys(found)) != list(dict.fromkeys(wished)) else []
    extra = [word for word in words if _unwanted(word, absent)]
    return [f"{word} is missing" for word in lacks] + [f"{word} is there" for word in wrong + extra] + [f"the order is not {text}" for text in order]


def _unwanted(word: str, absent: Sequence[str]) -> bool:
    return word in absent or any("=" not in gone and name_of(gone) == name_of(word) for gone in absent)


def grub_default(text: str, present: Sequence[str], absent: Sequence[str]) -> str:
    """/etc/default/grub as wished: GRUB_CMDLINE_LINUX, which every entry takes, holds the wish; _DEFAULT loses what contradicts it. Raises Failed."""
    names = [name_of(word) for word in present if name_of(word) not in _REPEATED]
    out, placed = [], False
    for number, line in enumerate(text.splitlines(keepends=True), 1):
        found = _GRUB.match(line.rstrip("\n"))
        if not found:
            if re.match(r"\s*(export\s+)?GRUB_CMDLINE_LINUX(_DEFAULT)?\+?=", line):
                raise Failed(f"{GRUB_DEFAULT}:{number}: {line.strip()!r} is no assignment that can be changed safely; expected NAME=\"words\" on one line")
            out.append(line)
            continue
        quote = found.group(3)[:1] if found.group(3)[:1] in ("'", '"') else ""
        old = found.group(3)[1:-1] if quote else found.group(3)
        new = edited(old, [], [*absent, *names]) if found.group(2) else edited(old, present, absent)
        placed = placed or not found.group(2)
        ending = "\n" if line.endswith("\n") else ""
        out.append(line if new == old else f"{found.group(1)}{quote or chr(34)}{new}{quote or chr(34)}{found.group(4)}{ending}")
    if not placed and present:
        out += ["" if not out or out[-1].endswith("\n") else "\n", f'GRUB_CMDLINE_LINUX="{" ".join(present)}"\n']
    return "".join(out)


def entry(text: str, present: Sequence[str], absent: Sequence[str]) -> str:
    """A boot loader entry (loader/entries/*.conf) as wished. One without an options line gets one."""
    if not _OPTIONS.search(text) and present:
        return f"{text.rstrip()}\noptions {' '.join(present)}\n"
    return _OPTIONS.sub(lambda found: found.group(1) + edited(found.group(2), present, absent), text)


def _line_file(text: str, present: Sequence[str], absent: Sequence[str]) -> str:
    return edited(text.rstrip("\n"), present, absent) + "\n" if missing(text, present, absent) else text


def read(system: System, args: Args) -> State:
    """Every file that holds the line, and what the running kernel was started with. A rescue entry is nobody's to change: it is the way back."""
    entries = [path for pattern in ENTRIES for path in sorted(glob.glob(pattern)) if "rescue" not in os.path.basename(path)]
    texts = {path: raw.decode("utf-8", "surrogateescape") for path in (GRUB_DEFAULT, FUTURE, *entries) for raw in [system.read(path)] if raw is not None}
    menus = {path: (system.read(path) or b"").decode("utf-8", "replace") for path, _ in MENUS if not entries and os.path.isfile(path)}
    running = (system.read("/proc/cmdline") or b"").decode("utf-8", "replace").strip()
    return {"texts": texts, "menus": menus, "running": running}


def diff(args: Args, state: State) -> Change:
    present, absent = args["present"], args["absent"]
    strange = [word for word in [*present, *absent] if not _WISH.fullmatch(word)]
    if strange:
        raise Failed(f"{', '.join(map(repr, strange))}: no argument of a kernel that a boot loader's file could hold; expected name or name=value")
    both = [word for word in present if _unwanted(word, absent)]
    if both:
        raise Failed(f"{', '.join(both)}: wished both present and absent")
    new = {path: _how(path)(text, present, absent) for path, text in state["texts"].items()}
    changed = [path for path, text in state["texts"].items() if new[path] != text]
    stale = [path for path, menu in state["menus"].items() if any(missing(line, present, absent) for line in _menu_lines(menu))]
    again = [path for path in state["menus"] if path in stale or GRUB_DEFAULT in changed]
    return Change(
        actions=[f"write {path}" for path in changed] + [f"generate {path}" for path in again],
        before="".join(state["texts"][path] for path in changed), after="".join(new[path] for path in changed),
        data={"files": {path: new[path] for path in changed}, "menus": again},
    )


def _how(path: str) -> Any:
    return grub_default if path == GRUB_DEFAULT else _line_file if path == FUTURE else entry


def _menu_lines(menu: str) -> List[str]:
    """The lines of grub.cfg that start a Linux kernel of this system; a memory test or another system's are not ours."""
    return [line for line in menu.splitlines() if re.match(r"\s*linux(16|efi)?\s+\S*/?vmlinu[xz]", line)]


def write(system: System, args: Args, state: State, change: Change) -> None:
    for path, text in change.data["files"].items():
        system.write_atomic(path, text.encode("utf-8", "surrogateescape"))
    for path, argv in MENUS:
        if path in change.data["menus"]:
            done = system.run(list(argv), timeout=MENU_SECONDS)
            if done.rc != 0:
                raise Failed(f"{' '.join(argv)}: {done.stderr.strip() or f'exit code {done.rc}'}", rc=done.rc, stderr=done.stderr)


def values(args: Args, state: State, change: Change) -> Dict[str, Any]:
    lacks = missing(state["running"], args["present"], args["absent"])
    files = sorted(state["texts"])
    nowhere = "no boot loader keeps its files here (a container, or a boot over the network): set it where this node's kernel line is made"
    warnings = [f"{nowhere}: {', '.join(lacks)}"] if lacks and not files else []
    return {"reboot_needed": bool(lacks and files), "missing": lacks, "files": files, "running": state["running"], "warnings": warnings}
