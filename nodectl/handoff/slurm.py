"""Slurm: node lines, GPUs, and a script that drains who is not proven and resumes whom an earlier run had drained.

Written for slurm.conf(5), gres.conf(5) and scontrol(1) of Slurm 22.05 and later.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Container, Sequence

from nodectl.handoff.artefact import Artefact, Inexpressible
from nodectl.handoff.pool import Excluded, HandedNode, Pool

# What Slurm takes for a node without reading a range ([), a list (,), a comment (#) or a space into it.
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
# DEFAULT gives values to the lines after it, ALL means every node of the cluster, and `proven` is the set below.
_TAKEN = frozenset(["default", "all", "proven"])
_ADDRESS = re.compile(r"[A-Za-z0-9:][A-Za-z0-9.:_-]*")
# slurmd drains a node that has less memory than its line says, and the kernel keeps a little more for itself with every update.
MEMORY_SHARE = 0.98
# sinfo and squeue are read on a terminal; all reasons stand in excluded.json.
REASON_MOST = 240
# By this word the script knows which drained nodes are its own.
MARK = "nodectl"

_HEAD = """# Nodes of nodectl's run {run}, judged {judged}: {proven} proven, {excluded} excluded.
# In slurm.conf: GresTypes=gpu where there are GPUs, and a line `Include /path/to/nodes.conf` behind it.
# A partition over all of them: PartitionName=train Nodes=ALL (the excluded ones are drained, and sinfo -R says why);
# over the proven ones alone: Nodes=proven
"""


def slurm(pool: Pool) -> Artefact:
    """nodes.conf, gres.conf and apply.sh. Excluded nodes stand in nodes.conf as drained, with the reason."""
    refused: dict[str, str] = {}
    lines = _lines_of_proven(pool.nodes, refused)
    left_out: list[tuple[str, str, str]] = []
    for item in pool.excluded:
        try:
            left_out.append((name(item), reason(item), _excluded(item)))
        except Inexpressible as error:
            refused[item.host] = str(error)
    head = _HEAD.format(run=_safe(pool.run_id) or "without a name", judged=pool.judged or "at no known time", proven=len(lines), excluded=len(left_out))
    nodes = [line for line, _ in lines.values()]
    set_line = [f"NodeSet=proven Nodes={','.join(lines)}"] if lines else []
    gres = [line for _, line in lines.values() if line]
    files = {
        "slurm/nodes.conf": head + "".join(f"{line}\n" for line in [*_waived(pool, refused), *nodes, *(line for *_, line in left_out), *set_line]),
        "slurm/gres.conf": "# GPUs of the proven nodes. Beside slurm.conf, as gres.conf.\n" + "".join(f"{line}\n" for line in gres),
        "slurm/apply.sh": script(list(lines), [(host, why) for host, why, _ in left_out], pool.run_id),
    }
    return Artefact(files, refused)


def _lines_of_proven(nodes: Sequence[HandedNode], refused: dict[str, str]) -> dict[str, tuple[str, str]]:
    """(line of nodes.conf, line of gres.conf) by Slurm's name; whoever has none goes into ``refused``."""
    lines: dict[str, tuple[str, str]] = {}
    hostnames: dict[str, str] = {}
    for node in nodes:
        try:
            called = name(node)
            if called in lines:
                raise Inexpressible(f"Slurm would know two nodes as {called}")
            lines[called] = _proven(node, hostnames), _gres(node)
            hostnames[_short(node) or called] = node.host
        except Inexpressible as error:
            refused[node.host] = str(error)
    return lines


def _short(node: HandedNode) -> str:
    return node.machine.hostname.partition(".")[0]


def _waived(pool: Pool, refused: Container[str]) -> list[str]:
    """Comments; one that ended in a backslash would swallow the line after it."""
    return [
        _safe(f"# {node.host}: {waiver.check} waived by {waiver.who} until {waiver.until}: {waiver.why}").replace("\\", "/")
        for node in pool.nodes if node.host not in refused for waiver in node.waivers
    ]


def name(item: HandedNode | Excluded) -> str:
    """Slurm's node name. Raises Inexpressible."""
    host = item.names.slurm or item.host
    if not _NAME.fullmatch(host):
        raise Inexpressible(f"{host!r} is not a node name of Slurm: letters, digits, dots, - and _, at most 64 of them")
    if host.lower() in _TAKEN:
        raise Inexpressible(f"{host!r} means something else to Slurm")
    return host


def reason(item: Excluded) -> str:
    """Why the node is drained, as one printable line that slurm.conf and scontrol both keep as it is.

    slurm.conf knows no escapes: a quote would end the text, # the line, and \\ would join it with the next.
    """
    text = f"{MARK}: {item.sentence}".replace('"', "'").replace("#", "no. ").replace("\\", "/")
    text = _safe(" ".join(text.split()))
    return text if len(text) <= REASON_MOST else f"{text[:REASON_MOST - 3]}..."


def _safe(text: str) -> str:
    return "".join(char if char.isprintable() else "?" for char in text)


def _proven(node: HandedNode, hostnames: dict[str, str]) -> str:
    """slurmd finds its own line by the short host name of its machine."""
    machine = node.machine
    if machine.error or not machine.cpus or not machine.memory:
        raise Inexpressible(f"its processors and memory are not known: {machine.error or 'it did not say'}")
    called, hostname = name(node), _short(node)
    words = [f"NodeName={called}"]
    if hostname and hostname != called:
        if not _NAME.fullmatch(hostname):
            raise Inexpressible(f"its host name is {hostname!r}, which slurm.conf cannot hold")
        words.append(f"NodeHostname={hostname}")
    if hostname in hostnames:
        raise Inexpressible(f"it calls itself {hostname}, and so does {hostnames[hostname]}: slurmd could not tell which line is its own")
    address = node.fabric_address if node.connection == "local" else node.address
    if address != called:
        words.append(f"NodeAddr={_address(address)}")
    words.append(f"CPUs={machine.cpus}")
    if machine.sockets * machine.cores_per_socket * machine.threads_per_core == machine.cpus:
        words += [f"Sockets={machine.sockets}", f"CoresPerSocket={machine.cores_per_socket}", f"ThreadsPerCore={machine.threads_per_core}"]
    words.append(f"RealMemory={int(machine.memory * MEMORY_SHARE) // 2**20}")
    if node.gpus:
        words.append(f"Gres=gpu:{node.machine.gpu_type}:{node.gpus}")
    return " ".join([*words, "State=UNKNOWN"])


def _address(address: str) -> str:
    if not _ADDRESS.fullmatch(address):
        raise Inexpressible(f"its address is {address!r}, which slurm.conf cannot hold")
    return address


def _excluded(item: Excluded) -> str:
    """As a comment where this run never learned an address: slurmctld would wait for a name that may not resolve, at every start."""
    known = bool(_ADDRESS.fullmatch(item.address))
    address = [f"NodeAddr={item.address}"] if known and item.address != name(item) else []
    line = " ".join([f"NodeName={name(item)}", *address, "State=DRAIN", f'Reason="{reason(item)}"'])
    return line if known else f"# (no address is known) {line}"


def _gres(node: HandedNode) -> str:
    """One line of gres.conf; "" where there is nothing to say. slurmd hands a job its GPUs by their device files."""
    if not node.gpus:
        return ""
    if node.machine.gpu_model.startswith("AMD"):
        return f"NodeName={name(node)} AutoDetect=rsmi Name=gpu Type={node.machine.gpu_type}"
    found = [re.fullmatch(r"/dev/nvidia(\d+)", path) for path in node.machine.gpu_files]
    numbers = [int(match[1]) for match in found if match]
    if len(numbers) != node.gpus:
        raise Inexpressible(f"torch sees {node.gpus} GPUs and there are {len(numbers)} files /dev/nvidiaN: no line of gres.conf would be true")
    return f"NodeName={name(node)} Name=gpu Type={node.machine.gpu_type} File=/dev/nvidia{_ranges(numbers)}"


def _ranges(numbers: Sequence[int]) -> str:
    """0,1,2,5 as [0-2,5]; a single one as it is."""
    runs: list[list[int]] = []
    for number in numbers:
        if runs and runs[-1][-1] == number - 1:
            runs[-1].append(number)
        else:
            runs.append([number])
    words = [str(run[0]) if len(run) == 1 else f"{run[0]}-{run[-1]}" for run in runs]
    return words[0] if len(numbers) == 1 else f"[{','.join(words)}]"


_SCRIPT = r"""#!/bin/sh
# Drain the nodes that nodectl's run @RUN@ excluded, each with its reason, and resume those
# that an earlier handoff had drained and this run proved.
#
#     slurm/apply.sh             do it (as Slurm's operator)
#     slurm/apply.sh --dry-run   ask Slurm and print what would be done
#
# A node that somebody else drained keeps its state and its reason. May be run again and again.
set -u

dry=''
case ${1-} in
    '') ;;
    --dry-run) dry=1 ;;
    *) sed -n '2,9s/^# \{0,1\}//p' "$0" >&2; exit 2 ;;
esac
command -v scontrol >/dev/null 2>&1 || { echo "apply.sh: no scontrol here: run it where Slurm is" >&2; exit 1; }
status=0

# look NODE: its state and the reason that stands on it.
look() {
    shown=$(scontrol show node "$1" 2>&1) || { echo "$1: Slurm does not know it: $shown" >&2; status=1; return 1; }
    state=$(printf '%s\n' "$shown" | sed -n 's/^ *State=\([^ ]*\).*/\1/p' | head -n 1)
    why=$(printf '%s\n' "$shown" | sed -n 's/^ *Reason=//p' | head -n 1)
    [ -n "$state" ] || { echo "$1: Slurm gave no state: $shown" >&2; status=1; return 1; }
}

update() {
    if [ -n "$dry" ]; then
        printf 'scontrol update'
        printf " '%s'" "$@"
        printf '\n'
    else
        scontrol update "$@" || { echo "$1: scontrol failed" >&2; status=1; }
    fi
}

drain() {
    look "$1" || return 0
    case $state in
        *DRAIN*) case $why in @MARK@:*) ;; *) echo "$1: drained by somebody else ($why): left as it is"; return 0 ;; esac ;;
    esac
    update "NodeName=$1" State=DRAIN "Reason=$2"
}

resume() {
    look "$1" || return 0
    case $state in *DRAIN*) ;; *) return 0 ;; esac
    case $why in
        @MARK@:*) update "NodeName=$1" State=RESUME ;;
        *) echo "$1: proven, but drained by somebody else ($why): left as it is" ;;
    esac
}

@CALLS@
exit "$status"
"""


def script(proven: Sequence[str], drained: Sequence[tuple[str, str]], run_id: str) -> str:
    """The text of apply.sh for nodes that passed ``name``, and (node, reason) of those to drain."""
    calls = [*(f"drain {host} {shlex.quote(why)}" for host, why in drained), *(f"resume {host}" for host in proven)]
    values = {"@RUN@": _safe(run_id), "@MARK@": MARK, "@CALLS@": "\n".join(calls)}
    return re.sub("@(?:RUN|MARK|CALLS)@", lambda mark: values[mark[0]], _SCRIPT)
