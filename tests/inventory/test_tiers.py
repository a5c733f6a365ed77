"""network_tier, disk_tier and file_mounts as the run and the verification see them (their places: mistakes/tiers.yaml)."""

from __future__ import annotations

from typing import Any

import pytest

from nodectl.diagnostics.model import Mistakes
from nodectl.inventory.tiers import FileMount, disk_tier, file_mounts, network_tier


def test_mounts_in_the_order_written() -> None:
    mounts = file_mounts(
        {
            "file_mounts": {
                "/data": {"source": "s3://bucket/data/set", "mode": "MOUNT_CACHED", "profile": "dataset_ro"},
                "/ckpt": "s3://ckpt",
                "/jfs": {"source": "redis://10.0.0.5:6379/1", "client": "juicefs", "profile": "MODEL_CHECKPOINT_RW"},
                "/scratch/set": {"source": "s3://bucket/set", "mode": "COPY"},
                "/x/y": {"source": "s3://bucket.with-all/x", "endpoint": "https://s3.example", "region": "eu", "credentials": "team"},
            }
        }
    )
    assert mounts[0] == FileMount("/data", "s3://bucket/data/set", "MOUNT_CACHED", "dataset_ro")
    assert (mounts[0].bucket, mounts[0].prefix, mounts[0].cached) == ("bucket", "data/set", True)
    assert (mounts[1].mode, mounts[1].bucket, mounts[1].prefix, mounts[1].cached) == ("MOUNT", "ckpt", "", False)
    assert (mounts[2].client, mounts[2].profile, mounts[3].mode) == ("juicefs", "MODEL_CHECKPOINT_RW", "COPY")
    assert (mounts[4].endpoint, mounts[4].region, mounts[4].credentials) == ("https://s3.example", "eu", "team")


@pytest.mark.parametrize("variables", [{}, {"file_mounts": None}, {"file_mounts": {}}])
def test_no_mounts(variables: dict[str, Any]) -> None:
    assert file_mounts(variables) == []


@pytest.mark.parametrize(
    ("mounts", "said"),
    [
        ([], "not a mapping"),
        ({"data": "s3://b-c/x"}, "not a mount point"),
        ({"/a b": "s3://bucket"}, "not a mount point"),
        ({"/a/../b": "s3://bucket"}, "not a mount point"),
        ({"/": "s3://bucket"}, "would hide"),
        ({"/usr/": "s3://bucket"}, "would hide"),
        ({"/a": {}}, "no source"),
        ({"/a": 5}, "no source"),
        ({"/a": "gs://bucket"}, "source 'gs://bucket'"),
        ({"/a": "s3://B"}, "source 's3://B'"),
        ({"/a": {"source": "s3://bucket", "mode": "mount_cache"}}, "did you mean 'MOUNT_CACHED'?"),
        ({"/a": {"source": "s3://bucket", "mod": "MOUNT"}}, "unknown key 'mod'"),
        ({"/a": {"source": "s3://bucket", "profile": "dataset"}}, "did you mean 'dataset_r"),
        ({"/a": {"source": "s3://bucket", "profile": "nonsense"}}, "profile 'nonsense'"),
        ({"/a": {"source": "s3://bucket", "client": "s3f"}}, "did you mean 's3fs'?"),
        ({"/a": "s3://bucket", "/a/b": "s3://bucket/b"}, "inside each other"),
        ({"/a": "s3://bucket", "/a/": "s3://bucket/b"}, "inside each other"),
    ],
)
def test_mounts_that_cannot_be(mounts: Any, said: str) -> None:
    with pytest.raises(Mistakes) as caught:
        file_mounts({"file_mounts": mounts})
    assert said in " ".join(f"{one.message} {one.help}" for one in caught.value.diagnostics)


def test_all_mounts_are_checked_in_one_go() -> None:
    with pytest.raises(Mistakes) as caught:
        file_mounts({"file_mounts": {"a": "s3://bucket", "/b": 5, "/c": {"source": "x", "mode": "y"}}})
    assert len(caught.value.diagnostics) == 4


@pytest.mark.parametrize(("variables", "tier"), [({}, "best"), ({"network_tier": "best"}, "best"), ({"network_tier": "standard"}, "standard")])
def test_tiers(variables: dict[str, Any], tier: str) -> None:
    assert network_tier(variables) == tier
    assert disk_tier({"disk_tier": variables.get("network_tier")}) == tier


@pytest.mark.parametrize("value", ["fast", "Best", True, 1, ["best"]])
def test_tiers_that_cannot_be(value: Any) -> None:
    with pytest.raises(Mistakes, match="network_tier is"):
        network_tier({"network_tier": value})
    with pytest.raises(Mistakes, match="disk_tier is"):
        disk_tier({"disk_tier": value})
