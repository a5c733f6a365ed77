"""The one rule for which variables are secrets."""

from __future__ import annotations

from typing import Any

import pytest

from nodectl.inventory.secret_names import is_secret_name, masked, secret_texts

SECRET = [
    "ansible_password", "ansible_ssh_pass", "ansible_ssh_password", "ansible_become_password", "ansible_become_pass", "ansible_sudo_pass",
    "db_password2", "passwd", "key_passphrase", "hf_token", "token", "api_tokens", "API_KEY", "apikey", "secret", "client_secret", "secretKey",
    "object_cache_secret_key", "aws_secret_access_key", "access_key_secret", "credentials", "wandb-api-key", "apiToken", "tls_private_key", "db_pwd",
]  # fmt: skip
SHOWN = [
    "ansible_user", "ansible_ssh_private_key_file", "ansible_become_password_file", "token_path", "secrets_dir", "object_cache_access_key", "access_key_id",
    "tokenizer", "bypass", "compass", "passes", "monkey", "keyboard", "update_password", "max_retries",
]  # fmt: skip


@pytest.mark.parametrize("name", SECRET)
def test_names_of_secrets(name: str) -> None:
    assert is_secret_name(name)


@pytest.mark.parametrize("name", SHOWN)
def test_names_of_what_may_be_shown(name: str) -> None:
    assert not is_secret_name(name)


M = "********"
VALUES: list[tuple[Any, Any, list[str]]] = [
    ({"a": 1, "hf_token": "abc"}, {"a": 1, "hf_token": M}, ["abc"]),
    ({"s3": {"user": "u", "secret_key": "abc"}}, {"s3": {"user": "u", "secret_key": M}}, ["abc"]),
    ({"users": [{"name": "a", "password": 123456}]}, {"users": [{"name": "a", "password": M}]}, ["123456"]),
    ({"credentials": {"a": {"access_key": "k", "n": [1]}}}, {"credentials": {"a": {"access_key": M, "n": [M]}}}, ["k", "1"]),
    ({"file_mounts": {"/data": {"credentials": "dataset"}}}, {"file_mounts": {"/data": {"credentials": "dataset"}}}, []),
    ({"credentials": "user:abc"}, {"credentials": M}, ["user:abc"]),
    ({"password": "{{ vaulted }}"}, {"password": M}, []),
    ({"PasswordAuthentication": "no", "secret": None, "use_token": True}, {"PasswordAuthentication": "no", "secret": None, "use_token": True}, []),
]


@pytest.mark.parametrize(("value", "shown", "texts"), VALUES, ids=str)
def test_values_are_masked_at_any_depth(value: Any, shown: Any, texts: list[str]) -> None:
    assert masked(value) == shown
    assert list(secret_texts(value)) == texts
