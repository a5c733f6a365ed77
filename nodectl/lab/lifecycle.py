"""Brings a lab up, tells how it is, takes it down."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from nodectl.lab import base, disks, faults, guest_image, guests, hosts, inventory_file, needs, network, services, torch_share
from nodectl.lab.plan import REPO_PORT, STORE_PORT, LabPlan, guest_names, host_address, host_names, serials
from nodectl.lab.problem import LabProblem
from nodectl.lab.state import Fault, LabHost, LabState, load, locked
from nodectl.lab.teardown import take_down

Say = Callable[[str], None]
Power = Literal["running", "off", "frozen"]


@dataclass(frozen=True)
class HostStatus:
    """One host as it is now, not as it was asked for."""

    name: str
    address: str
    power: Power
    ssh: bool
    serials: tuple[str, ...]


@dataclass(frozen=True)
class LabStatus:
    """``state`` is None where there is no lab. ``services`` says of each whether it answers."""

    state: LabState | None
    hosts: tuple[HostStatus, ...] = ()
    services: tuple[tuple[str, bool], ...] = ()
    faults: tuple[Fault, ...] = ()
    notes: tuple[str, ...] = ()


def _silent(text: str) -> None:
    return None


def up(plan: LabPlan, say: Say = _silent) -> LabState:
    """Starts a lab and gives back its state when every host's sshd greets. ``say`` is told what takes long.

    Raises LabProblem when the machine or the plan does not allow it. After any failure or interrupt nothing of it is left.
    """
    plan = plan.checked()
    _refuse_what_is_taken(plan.dir)
    needs.require(plan.s3, plan.guests)
    _clear_the_way(plan.dir, say)
    needs.require_room(plan.hosts)
    needs.require_memory(plan.guests)
    shared = base.prepared(say)
    image = guest_image.prepared(shared, say) if plan.guests else None
    made = _make_folder(plan.dir)
    with locked(plan.dir, "starting the lab"):
        if load(plan.dir) is not None:
            raise LabProblem(f"another process has just started a lab in {plan.dir}")
        state = _new_state(plan, shared, made)
        complete = False
        try:
            _raise(state, plan, image, say)
            complete = True
        finally:
            if not complete:
                say("taking away what was started")
                take_down(state)
    return state


def _refuse_what_is_taken(folder: Path) -> None:
    """Raises LabProblem for a folder where a lab is up, or where files lie that a lab would write and did not."""
    old = load(folder)
    if old is not None and old.phase == "up":
        raise LabProblem(f"lab {old.name!r} is already up in {folder}: use {old.hosts_yaml}, or run `nodectl lab down --dir {folder}` first")
    taken = [] if old else [str(path) for path in inventory_file.written(folder) if path.exists()]
    if taken:
        raise LabProblem(f"{', '.join(taken)} exist already and were not made by a lab: choose another --dir")


def _clear_the_way(folder: Path, say: Say) -> None:
    if load(folder) is not None:
        say("taking away what an interrupted start has left")
        down(folder)


def _make_folder(folder: Path) -> list[Path]:
    """Makes the lab's folder and says which folders are new, outermost first."""
    missing = [path for path in [folder, *folder.parents] if not path.exists()]
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    return list(reversed(missing))


def _new_state(plan: LabPlan, shared: base.Base, made: list[Path]) -> LabState:
    state = LabState(secrets.token_hex(3), plan.name, plan.dir, base=str(shared.root), repo=str(shared.repo), s3=plan.s3)
    state.disk_bytes = plan.disk_bytes
    if plan.torch == "auto":
        site, why_not = torch_share.lendable(shared.python)
        state.torch_site = str(site or "")
        state.notes += [why_not] if why_not else []
    if needs.limits_fixed():
        state.notes.append("this machine withholds CAP_SYS_RESOURCE: hosts cannot raise limits (memlock, nofile) above the machine's own")
    for path in made:
        state.claim("dir", str(path))
    state.save()
    return state


def _raise(state: LabState, plan: LabPlan, image: guest_image.GuestImage | None, say: Say) -> None:
    network.lay(state)
    state.hosts, state.guests = (_planned(state.net, names, plan.disks) for names in (host_names(plan.hosts), guest_names(plan.guests)))
    state.save()
    inventory_file.write_key(state)
    services.start_repo(state)
    if state.s3:
        services.fill_store(state)
        services.start_store(state)
    for name in ("hosts", "disks"):
        state.claim("dir", str(state.dir / name))
        (state.dir / name).mkdir()
    for host in state.hosts:
        say(f"starting {host.name}")
        network.plug(state, host)
        loops = disks.make(state, host)
        hosts.make(state, host)
        hosts.boot(state, host, loops)
    if image is not None:
        guests.start_all(state, image, say)
    for host in state.hosts:
        _await(state, host)
    inventory_file.write_known_hosts(state)
    inventory_file.write_inventory(state)
    state.phase = "up"
    state.save()


def _planned(net: int, names: Sequence[str], count: int) -> tuple[LabHost, ...]:
    return tuple(LabHost(name, host_address(net, name), serials(net, name, count)) for name in names)


def _await(state: LabState, host: LabHost) -> None:
    said = hosts.await_boot(state, host)
    if said != "running":
        state.notes.append(f"{host.name} is {said}")
        state.save()


def down(folder: Path) -> bool:
    """Takes the lab in ``folder`` down, from any process and after any kind of end. False when there was none.

    Raises LabProblem that names what could not be removed; running it again goes on from there.
    """
    folder = folder.absolute().resolve()
    if load(folder) is None:
        return False
    with locked(folder, "taking the lab down"):
        state = load(folder)
        if state is None:
            return False
        take_down(state)
    return True


def status(folder: Path) -> LabStatus:
    """The lab in ``folder`` as it is now."""
    state = load(folder)
    if state is None:
        return LabStatus(None)
    found = tuple(HostStatus(host.name, host.address, power(state, host.name), hosts.greets(host.address), host.serials) for host in state.hosts)
    found += tuple(HostStatus(one.name, one.address, guest_power(state, one.name), hosts.greets(one.address), one.serials) for one in state.guests)
    names = [(services.REPO, REPO_PORT), *([(services.STORE, STORE_PORT)] if state.s3 else [])]
    serving = tuple((name, services.answering(state, port)) for name, port in names)
    return LabStatus(state, found, serving, tuple(state.faults), tuple(state.notes))


def guest_power(state: LabState, guest: str) -> Power:
    return "running" if guests.running(state, guest) else "off"


def power(state: LabState, host: str) -> Power:
    first = hosts.leader(state, host)
    if not first:
        return "off"
    return "frozen" if _stopped(first) else "running"


def _stopped(pid: int) -> bool:
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return False
    return fields[0] in ("T", "t")


def reset(state: LabState, names: Sequence[str]) -> LabState:
    """Puts hosts and guests back to the first day: no faults, fresh tree, empty disks, new host keys, booted. Gives back the new state."""
    called = {guest.name for guest in state.guests}
    chosen = [state.host(name) for name in names if name not in called]
    with locked(state.dir, "resetting hosts"):
        current = load(state.dir) or state
        for host in chosen:
            _forget_faults(current, host)
            hosts.power_off(current, host.name)
            hosts.remove(current, host)
            loops = disks.renew(current, host)
            hosts.make(current, host)
            hosts.boot(current, host, loops)
        guests.renew(current, [current.guest(name) for name in names if name in called], _silent)
        for host in chosen:
            _await(current, host)
        inventory_file.write_known_hosts(current)
    return current


def _forget_faults(state: LabState, host: LabHost) -> None:
    for fault in [applied for applied in state.faults if applied.host == host.name]:
        kind = faults.kind(fault.fault)
        if fault.fault == "down":  # it will be booted afresh
            network.set_port(state, host.name, up=True)
        elif not kind.in_tree:
            kind.lift(state, host, fault.value)
        state.faults.remove(fault)
    state.save()
