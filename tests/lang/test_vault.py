"""Vault: the same as ansible-vault's own code, both ways; what was touched stays closed; what was opened is secret."""

from __future__ import annotations

from pathlib import Path

import pytest
from ansible.parsing.vault import VaultLib, VaultSecret
from hypothesis import given, settings
from hypothesis import strategies as st

from nodectl.diagnostics.model import Collector
from nodectl.inventory.load import load_inventory
from nodectl.lang import document
from nodectl.lang.load import load_vars_file
from nodectl.lang.vault import DEFAULT_LABEL, Vault, VaultError, encrypt, is_encrypted, label_of
from nodectl.wire.secret import MASK, Secret

PASSWORD = Secret("sésame öffne dich")
VAULT = Vault({DEFAULT_LABEL: [PASSWORD]})
ANSIBLE = VaultLib([(DEFAULT_LABEL, VaultSecret(PASSWORD.reveal().encode()))])
TEXTS = [b"", b"a", b"fifteen bytes..", b"sixteen bytes...", "ümlaut ☃\n".encode(), bytes(range(256)), b"x" * 5000, b"$ANSIBLE_VAULT;1.1;AES256\n"]


@pytest.mark.parametrize("data", TEXTS, ids=len)
@pytest.mark.parametrize("label", [DEFAULT_LABEL, "prod", "a-b_c.d"])
def test_ansible_opens_what_was_sealed_here(data: bytes, label: str) -> None:
    sealed = encrypt(data, PASSWORD, label)
    assert ANSIBLE.decrypt(sealed.encode()) == data
    assert label_of(sealed) == label
    assert sealed.startswith(f"$ANSIBLE_VAULT;1.2;AES256;{label}\n" if label != DEFAULT_LABEL else "$ANSIBLE_VAULT;1.1;AES256\n")


@pytest.mark.parametrize("data", [data for data in TEXTS if not data.startswith(b"$ANSIBLE")], ids=len)
@pytest.mark.parametrize("label", [None, "prod"])
def test_what_ansible_sealed_opens_here(data: bytes, label: str | None) -> None:
    assert VAULT.open(ANSIBLE.encrypt(data, VaultSecret(PASSWORD.reveal().encode()), vault_id=label).decode()) == data


@given(st.binary(max_size=200), st.text(min_size=1, max_size=20).filter(lambda text: text.isprintable()))
@settings(max_examples=20, deadline=None)
def test_any_bytes_and_any_password(data: bytes, password: str) -> None:
    assert Vault({"x": [Secret(password)]}).open(encrypt(data, Secret(password), "x")) == data


def test_line_ends_and_blanks_of_an_editor_do_not_matter() -> None:
    sealed = encrypt(b"data", PASSWORD)
    for changed in (sealed.replace("\n", "\r\n"), "  " + sealed.replace("\n", "\n  "), sealed.rstrip(), sealed + "\n\n"):
        assert VAULT.open(changed) == b"data"


def test_the_label_is_tried_first_and_then_all_others() -> None:
    sealed = encrypt(b"data", PASSWORD, "prod")
    wrong = Secret("no")
    assert Vault({"prod": [PASSWORD]}).open(sealed) == b"data"
    assert Vault({"dev": [wrong], "other": [wrong, PASSWORD]}).open(sealed) == b"data"


CLOSED = [
    (Vault(), encrypt(b"x", PASSWORD), "no vault password was given"),
    (Vault({DEFAULT_LABEL: [Secret("wrong")]}), encrypt(b"x", PASSWORD), "the vault password does not open it"),
    (Vault({DEFAULT_LABEL: [Secret("a"), Secret("b")]}), encrypt(b"x", PASSWORD, "prod"), "none of the 2 vault passwords opens it; it was encrypted for 'prod'"),
    (VAULT, "$ANSIBLE_VAULT;1.0;AES\n6162", "format 1.0 with AES is not known"),
    (VAULT, "$ANSIBLE_VAULT;1.1;AES256\n616", "damaged"),
    (VAULT, "$ANSIBLE_VAULT;1.1;AES256\nzz", "damaged"),
    (VAULT, "$ANSIBLE_VAULT;1.1;AES256\n", "damaged"),
    (VAULT, "$ANSIBLE_VAULT;1.1", "does not begin with"),
    (VAULT, "clear text", "does not begin with"),
]


@pytest.mark.parametrize(("vault", "text", "why"), CLOSED, ids=[why for *_, why in CLOSED])
def test_why_it_stays_closed(vault: Vault, text: str, why: str) -> None:
    with pytest.raises(VaultError, match=why):
        vault.open(text)


@given(st.integers(0, 10_000), st.sampled_from("0123456789abcdef"))
@settings(max_examples=40, deadline=None)
def test_a_changed_digit_never_opens_to_something_else(position: int, digit: str) -> None:
    sealed = encrypt(b"the whole truth", PASSWORD)
    head, body = sealed.split("\n", 1)
    at = position % len(body)
    changed = body[:at] + digit + body[at + 1 :]
    try:
        assert VAULT.open(f"{head}\n{changed}") == b"the whole truth"
    except VaultError:
        assert changed != body


@pytest.mark.parametrize("label", ["", "a b", "a;b", "a\nb"])
def test_a_label_that_would_break_the_header_is_refused(label: str) -> None:
    with pytest.raises(VaultError, match="no label"):
        encrypt(b"x", PASSWORD, label)


def sealed_file(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(encrypt(text.encode(), PASSWORD))
    return path


def inline(text: str) -> str:
    return "!vault |\n" + "".join(f"    {line}\n" for line in encrypt(text.encode(), PASSWORD).splitlines())


def test_a_value_in_a_file_is_a_secret_and_known_to_who_masks() -> None:
    vault, found = Vault({DEFAULT_LABEL: [PASSWORD]}), Collector()
    value = document.parse(f"a: 1\nkey: {inline('hunter2')}b: [{{c: x}}]\n", "f.yml", found, vault)
    assert value == {"a": 1, "key": Secret("hunter2"), "b": [{"c": "x"}]}
    assert vault.opened == [Secret("hunter2")]
    assert not found.errors
    assert str(value["key"]) == MASK


def test_a_whole_file_of_variables_holds_secrets(tmp_path: Path) -> None:
    path = sealed_file(tmp_path / "v.yml", "a: one\nb: [two, {c: three}]\nn: 4\nt: true\ntemplate: '{{ a }}-x'\nempty: ''\n")
    vault, found = Vault({DEFAULT_LABEL: [PASSWORD]}), Collector()
    expected = {"a": Secret("one"), "b": [Secret("two"), {"c": Secret("three")}], "n": 4, "t": True, "template": "{{ a }}-x", "empty": ""}
    assert load_vars_file(path, found, vault) == expected
    assert vault.opened == [Secret(text) for text in ("one", "two", "three")]


def test_a_mistake_inside_an_encrypted_file_has_its_place_and_no_line_of_it_is_quoted(tmp_path: Path) -> None:
    path, found = sealed_file(tmp_path / "v.yml", "password: hunter2\npassword: hunter3\n"), Collector()
    load_vars_file(path, found, VAULT)
    assert [(one.code, str(one.origin)) for one in found.errors] == [("E102", f"{path} (decrypted):2:1")]
    assert "hunter" not in repr(found.errors)


@pytest.mark.parametrize("place", ["group_vars/all.yml", "group_vars/all/vault.yml", "host_vars/n1.yml", "group_vars/gpu"])
def test_an_inventory_reads_encrypted_variables_wherever_they_stand(place: str, tmp_path: Path) -> None:
    (tmp_path / "hosts.yaml").write_text("gpu: {hosts: {n1: {}}}\n")
    sealed_file(tmp_path / place, "token: hunter2\n")
    found = Collector()
    assert load_inventory([str(tmp_path / "hosts.yaml")], found, VAULT).variables("n1")["token"] == Secret("hunter2")
    assert not found.errors
    load_inventory([str(tmp_path / "hosts.yaml")], found)
    assert [(one.code, "no vault password" in one.message) for one in found.errors] == [("E105", True)]


@pytest.mark.parametrize(("name", "text"), [("hosts.yaml", "gpu: {hosts: {n1: {}, n2: {}}}"), ("hosts.ini", "[gpu]\nn1\nn2\n")])
def test_an_inventory_may_be_encrypted_itself(name: str, text: str, tmp_path: Path) -> None:
    found = Collector()
    assert load_inventory([str(sealed_file(tmp_path / name, text))], found, VAULT).names() == ["n1", "n2"]
    assert not found.errors


@pytest.mark.parametrize(("text", "encrypted"), [("$ANSIBLE_VAULT;1.1;AES256\n", True), ("$ANSIBLE_VAULT", False), ("", False), (" $ANSIBLE_VAULT;", False)])
def test_is_encrypted(text: str, encrypted: bool) -> None:
    assert is_encrypted(text) is encrypted
