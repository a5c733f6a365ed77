"""The launcher: torchrun on every node that passed, over plain ssh, from nothing but the files beside it."""

from __future__ import annotations

import re
import shlex

from nodectl.handoff.pool import Pool

_TEXT = r'''#!/usr/bin/env bash
# Launch SCRIPT with torchrun on every node that nodectl handed off.
#
#     ./torchrun.sh SCRIPT [ARGS...]
#
# SCRIPT is a Python file on this machine; it is copied to a temporary folder of each node, which is TMPDIR there and is removed
# afterwards. Output comes with the node's name before each line. When one node fails, all others are ended; the exit code is the
# first that was not 0.
# MASTER_PORT=N chooses the port of the rendezvous; without it a free one is asked for on the first node.
# Node pool of run @RUN@: @COUNT@ nodes, world size @WORLD@.
set -u

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd) || exit 1
names=(@NAMES@)
local_nodes=(@LOCAL@)
nproc=(@NPROC@)
pythons=(@PYTHONS@)
master_addr=@MASTER@
count=${#names[@]}

if [ $# -lt 1 ] || [ "$1" = "-h" ] || [ "$1" = "--help" ]; then
    sed -n '2,10s/^# \{0,1\}//p' "${BASH_SOURCE[0]}" >&2
    exit 2
fi
script=$1
shift
if [ ! -f "$script" ] || [ ! -r "$script" ]; then
    echo "torchrun.sh: cannot read $script: expected a Python file on this machine" >&2
    exit 1
fi

for name in "${names[@]}"; do
    # Without it ranks would bind to whatever interface they find first.
    [ -r "$here/env/$name.env" ] || { echo "torchrun.sh: cannot read $here/env/$name.env: write the handoff again" >&2; exit 1; }
done

# on INDEX COMMAND: run a shell command on a node; stdin and stdout are the caller's.
on() {
    if [ "${local_nodes[$1]}" = 1 ]; then
        bash -c "$2"
    else
        ssh -F "$here/ssh_config" -- "${names[$1]}" "$2"
    fi
}

# Single quotes only: the login shell of a node need not be bash.
quoted() {
    local word escaped="'\\''"
    for word in "$@"; do printf "'%s' " "${word//\'/$escaped}"; done
}

work=$(mktemp -d) || exit 1
folders=()
pids=()

finish() {
    status=$?
    trap - EXIT INT TERM HUP
    # Closing the pipe is what ends the remote side, also where this script is killed: see the remote part.
    exec 9>&-
    for pid in ${pids[@]+"${pids[@]}"}; do wait "$pid" 2>/dev/null; done
    for index in "${!folders[@]}"; do
        [ -n "${folders[$index]}" ] && on "$index" "rm -rf -- $(quoted "${folders[$index]}")" </dev/null >/dev/null 2>&1
    done
    rm -rf -- "$work"
    exit "$status"
}
trap finish EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP

mkfifo "$work/hold" || exit 1
exec 9<>"$work/hold"

port=${MASTER_PORT:-}
if [ -z "$port" ]; then
    ask='import socket; s = socket.socket(); s.bind(("", 0)); print(s.getsockname()[1])'
    port=$(on 0 "$(quoted "${pythons[0]}" -c "$ask")" </dev/null) || { echo "torchrun.sh: no free port on ${names[0]}" >&2; exit 1; }
    port=${port##*$'\n'}
fi
case $port in
    '' | *[!0-9]*) echo "torchrun.sh: ${port:-nothing} is not a port: does a start file of ${names[0]} print something, or is MASTER_PORT wrong?" >&2; exit 1 ;;
esac

for ((index = 0; index < count; index++)); do
    # The last line: a start file of the login shell may print something before.
    folders[index]=$(on "$index" 'mktemp -d' </dev/null) || { echo "torchrun.sh: cannot log in to ${names[$index]}" >&2; folders[index]=''; exit 1; }
    folders[index]=${folders[index]##*$'\n'}
    on "$index" "cat > $(quoted "${folders[$index]}/${script##*/}")" <"$script" >/dev/null ||
        { echo "torchrun.sh: cannot copy $script to ${names[$index]}" >&2; exit 1; }
done

# The remote side: torchrun in a process group of its own; when stdin ends (this script is gone or gives up), the group is ended.
remote='set -m
"$@" </dev/null &
job=$!
{ cat >/dev/null; kill -TERM -- "-$job"; sleep 5; kill -KILL -- "-$job"; } <&0 2>/dev/null &
watch=$!
# From here on only the shell itself would print: its notices of ended jobs.
exec 2>/dev/null
wait "$job"
status=$?
kill -TERM -- "-$watch" 2>/dev/null
exit "$status"'

launch() {
    local index=$1 line
    # torchrun leaves its logs, and torch its compiled kernels, where temporary files go.
    local command=(env "TMPDIR=${folders[$index]}")
    shift
    while IFS= read -r line; do
        [ -n "$line" ] && command+=("$line")
    done <"$here/env/${names[$index]}.env"
    command+=("${pythons[$index]}" -m torch.distributed.run "--nnodes=$count" "--nproc-per-node=${nproc[$index]}" "--node-rank=$index"
        "--master-addr=$master_addr" "--master-port=$port" --rdzv-backend=static --rdzv-conf=timeout=120 "${folders[$index]}/${script##*/}" "$@")
    set -o pipefail
    on "$index" "$(quoted bash -c "$remote" torchrun "${command[@]}")" <"$work/hold" 2>&1 9>&- |
        awk -v name="[${names[$index]}] " '{ print name $0; fflush() }' 9>&-
}

for ((index = 0; index < count; index++)); do
    launch "$index" "$@" 9>&- &
    pids[index]=$!
done

# The first node that ends with an error ends the job: its peers could only wait for it.
left=$count
while [ "$left" -gt 0 ]; do
    left=0
    for index in "${!pids[@]}"; do
        if kill -0 "${pids[$index]}" 2>/dev/null; then
            left=$((left + 1))
            continue
        fi
        wait "${pids[$index]}"
        status=$?
        unset "pids[$index]"
        if [ "$status" -ne 0 ]; then
            echo "torchrun.sh: ${names[$index]} ended with exit code $status; ending the others" >&2
            exit "$status"
        fi
    done
    [ "$left" -gt 0 ] && sleep 0.2
done
exit 0
'''

_MARK = re.compile("@(?:RUN|COUNT|WORLD|NAMES|LOCAL|NPROC|PYTHONS|MASTER)@")


def torchrun(pool: Pool) -> str:
    """The script's text. ``pool`` has at least one node; the first one holds the rendezvous."""
    values = {
        "@RUN@": pool.run_id or "(no id)",
        "@COUNT@": str(len(pool.nodes)),
        "@WORLD@": str(pool.world_size),
        "@NAMES@": shlex.join(node.host for node in pool.nodes),
        "@LOCAL@": " ".join("1" if node.connection == "local" else "0" for node in pool.nodes),
        "@NPROC@": " ".join(str(node.nproc) for node in pool.nodes),
        "@PYTHONS@": shlex.join(node.torch_python for node in pool.nodes),
        "@MASTER@": shlex.quote(pool.nodes[0].fabric_address),
    }
    # In one pass: a name that looks like a mark stays a name.
    return _MARK.sub(lambda mark: values[mark[0]].replace("\n", " "), _TEXT)
