# SPDX-License-Identifier: BSD-3-Clause
"""Records held against each other: which controls are to be trusted, and what is judged."""

import importlib.util
import types

import pytest
from test_bench import load_bench

load_bench()
from bench import peers  # noqa: E402
from bench import plan as planning  # noqa: E402

# ---- What controls are made of ----


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder that has all that controls are made of."""
    for name in ("wheel", "built/spead2", "programs"):
        made = tmp_path / name
        made.mkdir(parents=True)
        (made / "__init__.py").write_text("import _spead2\n")
        (made / "_spead2.so").write_bytes(name.encode())
    (tmp_path / "ceiling").write_bytes(b"loops")
    monkeypatch.setattr(peers, "_FROM_SOURCE", tmp_path / "built")
    monkeypatch.setattr(peers, "_PEERS", tmp_path / "programs")
    monkeypatch.setattr(peers, "_installed_peer", lambda: tmp_path / "wheel")
    monkeypatch.setattr(peers, "_ceiling", lambda: tmp_path / "ceiling")
    return tmp_path


def test_a_record_names_the_build_of_each_program_beside_ours(folder):
    found = planning.versions()
    names = {name for name in found if name.endswith("-build")}
    assert names == {"ceiling-build", "spead2-build", "spead2-source-build"}
    assert len({found[name] for name in names}) == 3
    assert all(len(found[name]) == 12 for name in names)


def test_a_record_names_no_build_of_what_is_not_there(folder, monkeypatch):
    (folder / "ceiling").unlink()
    monkeypatch.setattr(peers, "_FROM_SOURCE", folder / "nowhere")
    assert set(peers.builds()) == {"spead2"}
    monkeypatch.setattr(peers, "_installed_peer", lambda: None)
    assert peers.builds() == {}


@pytest.mark.parametrize(
    ("file", "changed"),
    [
        ("wheel/_spead2.so", {"spead2"}),
        ("built/spead2/_spead2.so", {"spead2-source"}),
        ("programs/_spead2.so", {"spead2", "spead2-source"}),
        ("ceiling", {"ceiling"}),
    ],
)
def test_what_is_changed_of_a_program_beside_ours_is_another_build_of_it(folder, file, changed):
    before = peers.builds()
    (folder / "wheel" / "__pycache__").mkdir()
    (folder / "wheel" / "__pycache__" / "made_at_any_time.pyc").write_bytes(b"")
    assert peers.builds() == before
    (folder / file).write_bytes(b"another")
    after = peers.builds()
    assert {name for name in before if before[name] != after[name]} == changed


def test_the_installed_peer_is_found_where_python_finds_it(monkeypatch, tmp_path):
    spec = types.SimpleNamespace(origin=str(tmp_path / "spead2" / "__init__.py"))
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: spec)
    assert peers._installed_peer() == tmp_path / "spead2"
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    assert peers._installed_peer() is None
