# SPDX-License-Identifier: BSD-3-Clause
"""What a record says of the programs that are measured beside ours: which builds they are."""

import importlib.util
import types

import pytest

from bench import peers
from bench import plan as planning


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder that has all that is measured beside ours."""
    for name in ("wheel", "built/spead2", "peer"):
        made = tmp_path / name
        made.mkdir(parents=True)
        (made / "__init__.py").write_text("import _spead2\n")
        (made / "_spead2.so").write_bytes(name.encode())
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "ceiling").write_bytes(b"loops")
    monkeypatch.setattr(peers, "_FROM_SOURCE", tmp_path / "built")
    monkeypatch.setattr(peers, "PACKAGE", tmp_path)
    monkeypatch.setattr(peers, "_installed_peer", lambda: tmp_path / "wheel")
    return tmp_path


def test_a_record_names_no_build_of_what_is_not_there(folder, monkeypatch):
    (folder / "bin" / "ceiling").unlink()
    monkeypatch.setattr(peers, "_FROM_SOURCE", folder / "nowhere")
    assert set(peers.builds()) == {"spead2"}
    monkeypatch.setattr(peers, "_installed_peer", lambda: None)
    assert peers.builds() == {}


@pytest.mark.parametrize(
    ("file", "changed"),
    [
        ("wheel/_spead2.so", {"spead2"}),
        ("built/spead2/_spead2.so", {"spead2-source"}),
        ("peer/_spead2.so", {"spead2", "spead2-source"}),
        ("bin/ceiling", {"ceiling"}),
    ],
)
def test_what_is_changed_of_a_program_beside_ours_is_another_build_of_it(folder, file, changed):
    before = peers.builds()
    assert planning.versions().items() >= {f"{name}-build": before[name] for name in before}.items()
    assert len({*before.values()}) == 3
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
