"""synchronize: rsync between the controller and the node, over the login that the inventory describes."""

from __future__ import annotations

import contextlib
import shlex
import shutil
import subprocess
import tempfile
from typing import IO

from nodectl.engine.actions.contract import ActionFailed, Args, Context
from nodectl.engine.actions.files import find_source
from nodectl.transport.channel import BecomeTarget, Target
from nodectl.wire.outcome import Outcome
from nodectl.wire.params import Param, Spec

# Stands before each line about something that was changed, so that no other line of rsync's is taken for one.
MARK = "<<CHANGED>>"
# How often a running rsync is looked at.
TICK = 0.1
# Parameters that rsync takes as a switch of the same name; those that --archive already means are switched off by no.
SWITCHES = {
    "checksum": "--checksum", "compress": "--compress", "copy_links": "--copy-links", "delete": "--delete-after", "dirs": "--dirs",
    "existing_only": "--existing", "partial": "--partial",
}
ARCHIVED = ("recursive", "links", "perms", "times", "owner", "group")

SPEC = Spec(
    summary="Bring a folder to the node, or from it, by rsync",
    params={
        "src": Param("path", "Where from: on the controller (searched in files/), on the node with mode: pull.", required=True),
        "dest": Param("path", "Where to.", required=True),
        "mode": Param("str", "push to the node, or pull from it.", default="push", choices=("pull", "push")),
        "archive": Param("bool", "Keep modes, times, owners, links and all below.", default=True),
        "checksum": Param("bool", "Compare contents, not times and sizes.", default=False),
        "compress": Param("bool", "Pack on the way.", default=True),
        "copy_links": Param("bool", "Copy what links point to.", default=False),
        "delete": Param("bool", "Remove at dest what is not at src.", default=False),
        "dirs": Param("bool", "Copy folders without what is in them.", default=False),
        "existing_only": Param("bool", "Make nothing new at dest.", default=False),
        "partial": Param("bool", "Keep what was copied when the line breaks.", default=False),
        "delay_updates": Param("bool", "Put all files in place at the end.", default=True),
        **{name: Param("bool", "As rsync's switch of that name; archive means it.") for name in ARCHIVED},
        "link_dest": Param("list", "Folders to link files from that are the same there.", elements="path"),
        "rsync_opts": Param("list", "Further options for rsync.", default=[], elements="str"),
        "rsync_path": Param("str", "rsync on the node."),
        "rsync_timeout": Param("int", "Seconds without a byte, after which it ends; 0: never.", default=0),
        "dest_port": Param("int", "Another port for ssh."),
        "private_key": Param("path", "Another key for ssh."),
        "set_remote_user": Param("bool", "Log in as the inventory says.", default=True),
        "verify_host": Param("bool", "Taken for Ansible's sake: host keys are always verified.", default=True),
        "use_ssh_args": Param("bool", "Taken for Ansible's sake: ansible_ssh_common_args always counts.", default=True),
        "ssh_connection_multiplexing": Param("bool", "Let ssh share a connection that is open.", default=False),
    },
    returns={"cmd": "what was run", "rc": "rsync's exit code", "msg": "what it said", "stdout_lines": "that, as lines"},
    example="- synchronize: {src: dataset/, dest: /scratch/dataset, delete: true}\n",
)


def run(context: Context, args: Args) -> Outcome:
    argv = _argv(context, args)
    rc, out, err = _to_the_end(context, argv)
    shown = shlex.join(argv)
    if rc:
        return Outcome(failed=True, msg=err.strip() or f"rsync ended with {rc}", values={"rc": rc, "cmd": shown})
    # With link_dest rsync also tells of what it left as it was, with a dot.
    changed = any(line.startswith(MARK) and not line.startswith(f"{MARK}.") for line in out.splitlines()) if args["link_dest"] else MARK in out
    clean = out.replace(MARK, "")
    diff = [{"before": "", "after": clean, "before_header": args["dest"], "after_header": args["src"]}] if changed else []
    return Outcome(changed=changed, msg=clean, values={"rc": rc, "cmd": shown, "stdout_lines": [line for line in clean.split("\n") if line]}, diff=diff)


def _argv(context: Context, args: Args) -> list[str]:
    program = shutil.which("rsync")
    if program is None:
        raise ActionFailed("there is no rsync on the controller")
    options = ["--delay-updates", "-F"] if args["delay_updates"] else []
    options += [switch for name, switch in SWITCHES.items() if args[name]]
    options += ["--archive"] if args["archive"] else []
    options += [f"--{'' if args[name] else 'no-'}{name}" for name in ARCHIVED if args[name] is (not args["archive"])]
    options += [f"--timeout={args['rsync_timeout']}"] if args["rsync_timeout"] else []
    options += ["--dry-run"] if context.check else []
    options += ["-H", "-vv", *(f"--link-dest={path}" for path in args["link_dest"])] if args["link_dest"] else []
    return [program, *options, *_reach(context, args), *args["rsync_opts"], f"--out-format={MARK}%i %n%L", "--", *_ends(context, args)]


def _ends(context: Context, args: Args) -> list[str]:
    """(from, to); the node's side carries its name before it."""
    target, push = context.node.target, args["mode"] == "push"
    named = args["src"] if push else args["dest"]
    here = str(find_source(named, context.task, context.playbook_dir, "files") if push else context.playbook_dir / named)
    here += "/" if named.endswith("/") and not here.endswith("/") else ""
    there = args["dest"] if push else args["src"]
    if target.connection == "ssh":
        address = f"[{target.address}]" if ":" in target.address else target.address
        there = f"{target.user + '@' if target.user and args['set_remote_user'] else ''}{address}:{there}"
    return [here, there] if push else [there, here]


def _reach(context: Context, args: Args) -> list[str]:
    target, become = context.node.target, context.node.become
    if target.password is not None or (become is not None and become.password is not None):
        raise ActionFailed("rsync logs in by itself and cannot be given a password: a key, and sudo without a password, are needed")
    own_way = target.connection == "local" or any("--rsh" in option for option in args["rsync_opts"])
    path = _remote_rsync(args, become)
    return ([] if own_way else [f"--rsh={_ssh(target, args)}"]) + ([f"--rsync-path={path}"] if path else [])


def _remote_rsync(args: Args, become: BecomeTarget | None) -> str:
    if args["rsync_path"] or become is None:
        return args["rsync_path"] or ""
    return shlex.join(["sudo", "-n", "-u", become.user, "rsync"])


def _ssh(target: Target, args: Args) -> str:
    """The same login as nodectl's own. It never asks: a host key that is not known is refused."""
    words = ["ssh", "-o", "BatchMode=yes", *([] if args["ssh_connection_multiplexing"] else ["-S", "none"])]
    port, key = args["dest_port"] or target.port, args["private_key"] or target.key_file
    words += ["-p", str(port)] if port not in (0, 22) else []
    words += ["-i", key, "-o", "IdentitiesOnly=yes"] if key else []
    return shlex.join([*words, *(word for name, value in target.options.items() for word in ("-o", f"{name}={value}"))])


def _to_the_end(context: Context, argv: list[str]) -> tuple[int, str, str]:
    """(exit code, output, errors). An interrupt ends it too."""
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        try:
            process = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=out, stderr=err, start_new_session=True)
        except OSError as error:
            raise ActionFailed(f"{argv[0]}: {error.strerror}") from None
        try:
            while process.poll() is None:
                context.wait(TICK)
        finally:
            if process.poll() is None:
                process.terminate()
                with contextlib.suppress(subprocess.TimeoutExpired):
                    process.wait(2.0)  # rsync removes its half-written file in that time
                process.kill()
            process.wait()
        return process.returncode, _text(out), _text(err)


def _text(file: IO[bytes]) -> str:
    """A tree of many files has a long list: as much of it as an agent keeps of a program's output."""
    file.seek(0)
    return file.read(1024 * 1024).decode("utf-8", "replace")
