"""Whatever is done to sudo, PAM or the firewall: no login is lost, and what would lose it is taken back."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.roles.stage import Stages

pytestmark = pytest.mark.lab
FOLDERS = ("/etc/sudoers.d", "/etc/pam.d", "/etc/nftables.d", "/etc/systemd/system", "/var/lib/nodectl")


def sudoers(line: str) -> dict[str, Any]:
    return {"access_files": {"files": [{"path": "/etc/sudoers.d/zz-trial", "content": f"{line}\n", "mode": "0440"}], "validate": "visudo -cf %s", "revert_after": 5}}


def pam(path: str, content: str) -> dict[str, Any]:
    return {"access_files": {"files": [{"path": path, "content": content}], "revert_after": 5}}


def input_chain(*lines: str) -> dict[str, Any]:
    chain = "\n".join(["chain input {", "type filter hook input priority 5; policy drop;", *lines, "}"])
    return {"nftables_table": {"table": "inet trial", "path": "/etc/nftables.d/trial.nft", "content": chain, "revert_after": 5}}


LOST: list[tuple[str, dict[str, Any], str]] = [
    ("sudo takes everything from the operator", sudoers("ops ALL=(ALL) !ALL"), "no fresh login with the new settings"),
    ("sudo wants a terminal", sudoers("Defaults requiretty"), "no fresh login with the new settings"),
    ("sudo wants a password", sudoers("ops ALL=(ALL) PASSWD: ALL"), "no fresh login with the new settings"),
    ("sudoers that sudo cannot read", sudoers("ops ALL=(ALL NOPASSWD"), "/etc/sudoers.d/zz-trial is refused, nothing was changed"),
    ("PAM refuses every account", pam("/etc/pam.d/common-account", "account requisite pam_deny.so\n"), "no fresh login with the new settings"),
    ("PAM opens no session", pam("/etc/pam.d/common-session", "session requisite pam_deny.so\n"), "no fresh login with the new settings"),
    ("PAM has no module of that name", pam("/etc/pam.d/common-account", "account required pam_nonsense.so\n"), "no fresh login with the new settings"),
    ("the node says that nobody may log in", pam("/etc/nologin", "closed\n"), "no fresh login with the new settings"),
    # A login that waits outlives the node's own way back, and is told as too late.
    ("the firewall opens the wrong port", input_chain("ct state established,related accept", "tcp dport 2222 accept"), ""),
    ("the firewall cuts the session too", input_chain("tcp dport 2222 accept"), ""),
    ("the firewall is no firewall", input_chain("tcp dport ssh reject with nonsense"), "nft refuses the rules, nothing was changed"),
]  # fmt: skip


@pytest.mark.parametrize(("task", "reason"), [row[1:] for row in LOST], ids=[row[0] for row in LOST])
def test_what_would_lose_the_login_is_taken_back(provisioned: Stages, tmp_path: Path, task: dict[str, Any], reason: str) -> None:
    book = [{"hosts": "all", "become": True, "gather_facts": False, "tasks": [task]}]
    (tmp_path / "trial.yml").write_text(yaml.safe_dump(book))
    before = provisioned.tree(*FOLDERS)
    done = provisioned(str(tmp_path / "trial"))
    assert done.code in (2, 4), done.out
    assert reason in done.reason
    assert provisioned.as_user("sudo -n id -un") == "root\n"
    assert provisioned.tree(*FOLDERS) == before
    assert "trial" not in provisioned.shell("nft list tables")


def test_five_wrong_passwords_lock_passwords_and_nothing_else(provisioned: Stages) -> None:
    """The account's key goes on working, and a person who may can open the lock."""

    def sudo(*passwords: str) -> str:
        asks = " ".join(f"(echo {word} | sudo -S -k id -un) &" for word in passwords)
        return provisioned.shell(f"runuser -u alice -- sh -c '{asks} wait' 2>/dev/null || true")

    provisioned.shell("useradd --create-home alice; echo alice:Right-Horse-77 | chpasswd; printf 'Defaults:alice passwd_tries=1\\nalice ALL=(ALL) PASSWD: ALL\\n' > /etc/sudoers.d/alice")
    try:
        # All at once: PAM answers a wrong password after two seconds.
        assert sudo(*["wrong"] * 4) == ""
        assert sudo("Right-Horse-77") == "root\n"
        assert sudo(*["wrong"] * 5) == ""
        assert sudo("Right-Horse-77") == ""
        assert provisioned.as_user("sudo -n faillock --user alice --reset; id -un") == "ops\n"
        assert sudo("Right-Horse-77") == "root\n"
    finally:
        provisioned.shell("rm -f /etc/sudoers.d/alice; userdel --remove alice 2>/dev/null; truncate --size 0 /etc/security/opasswd")
