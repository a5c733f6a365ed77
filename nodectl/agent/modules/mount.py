"""mount: the mount table and fstab, in that order: a line is written only after its mount was seen to work."""

from __future__ import annotations

import os
import stat
from typing import Any, Dict, List, Optional, Tuple

from nodectl.agent import blocks, fstab, fstab_file
from nodectl.agent.contract import Args, Failed
from nodectl.agent.system import Mount, System
from nodectl.wire.outcome import Outcome
from nodectl.wire.params import Param, Spec

SPEC = Spec(
    summary="Mount, unmount and keep filesystems in fstab; one line per mount point, proven in the mount table.",
    params={
        "path": Param("path", "mount point (or none for swap)", required=True, aliases=("name",)),
        "src": Param("str", "device, UUID=, LABEL=, or what the filesystem type wants"),
        "fstype": Param("str", "filesystem type"),
        "opts": Param("str", "mount options", default="defaults"),
        "dump": Param("str", "fifth field", default="0"),
        "passno": Param("str", "sixth field, order of fsck", default="0"),
        "state": Param(
            "str", "what is wished", required=True, choices=("mounted", "present", "unmounted", "absent", "absent_from_fstab", "remounted", "ephemeral"),
        ),
        "fstab": Param("path", "another file than /etc/fstab", default=fstab.PATH),
        "boot": Param("bool", "false: not mounted at boot (noauto)", default=True),
        "backup": Param("bool", "keep a copy of the old fstab", default=False),
    },
    required_if=(("state", "mounted", ("src", "fstype")), ("state", "present", ("src", "fstype")), ("state", "ephemeral", ("src", "fstype"))),
    returns={"path": "mount point", "src": "source", "fstype": "type", "opts": "options", "backup_file": "copy of the old fstab", "device": "major:minor"},
    example="- mount:\n    path: /data\n    src: UUID=3e6be9de-8139-11d1-9106-a43f08d823a6\n    fstype: xfs\n    opts: noatime,nofail\n    state: mounted\n",
)
# mount may replay a large journal; an NFS server that is away makes it wait for two minutes by itself.
MOUNT_SECONDS = 150.0
ANSWER_SECONDS = 10.0
_OPPOSITE = {"ro": "rw", "noexec": "exec", "nosuid": "suid", "nodev": "dev", "noatime": "atime"}


def act(system: System, args: Args, check: bool) -> Outcome:
    """Plan from what is there now, do it, and look again."""
    plan, text = _plan(system, args)
    values: Dict[str, Any] = {**{key: args[key] for key in ("path", "src", "fstype", "dump", "passno")}, "opts": _options(args)}
    outcome = Outcome(changed=bool(plan), msg="; ".join(plan), values=values, diff=_shown(system, args, text))
    if check or not plan:
        return outcome
    _carry_out(system, args, plan)
    if text is not None:
        values["backup_file"] = fstab_file.store(system, text, args["fstab"], args["backup"])
    if args["state"] == "absent" and os.path.isdir(args["path"]):
        _remove_empty(args["path"])
    left, _ = _plan(system, args)
    if left and args["state"] != "remounted":
        raise Failed(f"did not take: {'; '.join(left)}", **values)
    live = live_mount(system, args["path"])
    values["device"] = live.device if live else ""
    return outcome


def _shown(system: System, args: Args, text: Optional[str]) -> List[Dict[str, str]]:
    if text is None:
        return []
    return [{"before": fstab_file.load(system, args["fstab"]), "after": text, "before_header": args["fstab"], "after_header": args["fstab"]}]


def _remove_empty(path: str) -> None:
    """As Ansible does for absent; a folder with anything in it stays."""
    try:
        os.rmdir(path)
    except OSError:
        return


def live_mount(system: System, path: str) -> Optional[Mount]:
    """What is mounted on exactly this path; of several, the one on top."""
    real = os.path.realpath(path)
    found = [m for m in system.mounts() if m.target == real]
    return found[-1] if found else None


def _plan(system: System, args: Args) -> Tuple[List[str], Optional[str]]:
    """(sentences, new text of fstab or None where it stays). The sentences' first words are the steps."""
    path, state = args["path"], args["state"]
    live = live_mount(system, path) if fstab.is_point(path) else None
    old = fstab_file.load(system, args["fstab"])
    new = _wanted_text(args, old)
    plan: List[str] = []
    if state in ("mounted", "ephemeral"):
        plan += _to_mounted(system, args, live, new != old and state == "mounted")
    elif state in ("unmounted", "absent") and live is not None:
        plan.append(f"unmount {path} ({live.fstype} from {live.source})")
    elif state == "remounted":
        if live is None:
            raise Failed(f"{path} cannot be remounted: nothing is mounted there")
        plan.append(f"remount {path}")
    if state == "absent" and fstab.is_point(path) and os.path.isdir(path) and (live is not None or not os.listdir(path)):
        plan.append(f"remove the folder {path} if it is empty")
    if new != old:
        words = ("take", "out of") if state.startswith("absent") else ("write", "into")
        plan.append(f"{words[0]} the line for {path} {words[1]} {args['fstab']}")
    return plan, new if new != old else None


def _wanted_text(args: Args, old: str) -> str:
    if args["state"] in ("mounted", "present"):
        options = _options(args)
        return fstab.with_entry(old, fstab.Entry(args["src"], args["path"], args["fstype"], options, args["dump"], args["passno"]))
    if args["state"] in ("absent", "absent_from_fstab"):
        return fstab.without(old, args["path"], args["src"] or "")
    return old


def _to_mounted(system: System, args: Args, live: Optional[Mount], line_changes: bool) -> List[str]:
    path = args["path"]
    if not fstab.is_point(path):
        raise Failed(f"state {args['state']} needs an absolute path, not {path!r} (swap lines: state present)")
    if live is None:
        return [f"mount {args['src']} on {path}"]
    if not same_source(system, args, live):
        raise Failed(f"{path} has {live.fstype} from {live.source} mounted, not {args['src']}: unmount it first (state: unmounted)")
    missing = missing_flags(args["opts"], live.options)
    if missing or line_changes:
        return [f"remount {path}" + (f" (it lacks {', '.join(missing)})" if missing else "")]
    return []


def _options(args: Args) -> str:
    """Those of the fstab line."""
    return str(args["opts"] if args["boot"] or "noauto" in args["opts"].split(",") else f"{args['opts']},noauto")


def missing_flags(opts: str, live: str) -> List[str]:
    """Flags that are wished and not in effect; of contradicting ones the last counts, as in mount(8)."""
    wanted = opts.split(",")
    out = []
    for flag, opposite in _OPPOSITE.items():
        said = [word for word in wanted if word in (flag, opposite)]
        if said and said[-1] == flag and flag not in live.split(","):
            out.append(flag)
    return out


def resolve(system: System, src: str) -> str:
    """The device path of UUID=, LABEL=, PARTUUID=, PARTLABEL=; the text itself for anything else; "" when there is none."""
    if not src.startswith(("UUID=", "LABEL=", "PARTUUID=", "PARTLABEL=")):
        return src
    done = system.run(["findfs", src], timeout=30.0)
    return done.stdout.strip() if done.rc == 0 else ""


def same_source(system: System, args: Args, live: Mount) -> bool:
    """Whether what is mounted is what is wished: by device number for disks, by file for bind mounts, else by text."""
    if "bind" in args["opts"].split(",") or "rbind" in args["opts"].split(","):
        here, there = system.stat(args["path"], follow=True), system.stat(args["src"], follow=True)
        return here is not None and there is not None and (here.st_dev, here.st_ino) == (there.st_dev, there.st_ino)
    kind = args["fstype"]
    if kind not in ("auto", live.fstype) and not live.fstype.endswith(f".{kind}"):
        return False
    device = resolve(system, args["src"])
    info = system.stat(device, follow=True) if device.startswith("/") else None
    if info is not None and stat.S_ISBLK(info.st_mode):
        return blocks.number_of(info.st_rdev) == live.device or os.path.realpath(live.source) == os.path.realpath(device)
    if info is not None and stat.S_ISREG(info.st_mode):
        return live.source.startswith("/dev/loop")  # an image file is mounted through a loop device
    return args["src"] == live.source or live.fstype in ("tmpfs", "proc", "sysfs", "devpts")


def _carry_out(system: System, args: Args, plan: List[str]) -> None:
    path = args["path"]
    for step in plan:
        word = step.split(" ", 1)[0]
        if word == "mount":
            os.makedirs(path, mode=0o755, exist_ok=True)
            _must(system, ["mount", "-t", args["fstype"], "-o", args["opts"], args["src"], path], f"{args['src']} could not be mounted on {path}")
            _prove(system, args)
        elif word == "remount":
            _must(system, ["mount", "-o", f"remount,{args['opts']}", path], f"{path} could not be remounted")
            _prove(system, args)
        elif word == "unmount":
            _must(system, ["umount", path], f"{path} could not be unmounted")


def _must(system: System, argv: List[str], what: str) -> None:
    done = system.run(argv, timeout=MOUNT_SECONDS)
    if done.rc != 0:
        raise Failed(f"{what}: {done.stderr.strip() or f'exit code {done.rc}'}; fstab is as it was", rc=done.rc, stderr=done.stderr)


def _prove(system: System, args: Args) -> None:
    live = live_mount(system, args["path"])
    if live is None:
        raise Failed(f"mount ended well, but {args['path']} is not in the mount table; fstab is as it was")
    silent = system.probe(args["path"], ANSWER_SECONDS) if os.path.isdir(args["path"]) else ""
    if silent:
        raise Failed(f"{args['path']} ({live.fstype} from {live.source}) is mounted but does not answer: {silent}; fstab is as it was")
