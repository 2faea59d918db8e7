# SPDX-License-Identifier: BSD-3-Clause
"""Everything public is on a page of the reference, with the signature that it has.

That its sources name everything is tested always; the pages themselves, once the site is built, as
`make docs` does with every warning an error, are looked at in the thorough tests.
"""

import ast
import importlib
import importlib.util
import inspect
import itertools
import re
import subprocess
import sys
from pathlib import Path

import click
import pytest

from spead_tutorial import _core
from support import ROOT
from support.once import MadeOnce

HEADERS = sorted((ROOT / "csrc" / "include" / "spead_tutorial").glob("*.h"))
HEADER = "".join(path.read_text() for path in HEADERS)
NAMES = """
chapters.catalogue lab notebook measure.records send send.asyncio measure.stats wire measure.place
measure.programs
"""
MODULES = ["spead_tutorial", *(f"spead_tutorial.{name}" for name in NAMES.split())]
#: What members of C++ classes are there for the language, or for a template beside them.
NOT_SHOWN = ("awaiter",)
#: What the site is made with, beyond the packages that the tests take.
NEEDED = ("myst_nb", "numpydoc", "sphinx", "sphinx_click", "sphinx_design")

Inventory = dict[str, set[str]]

pytestmark = pytest.mark.timeout(400)  # the pages of the reference are made by Sphinx


def build_site(folder: Path) -> None:
    """Build the reference, without the other pages."""
    target = folder / "site"
    target.mkdir()
    # The build makes the folder of notebooks.
    others = {path.name for path in (ROOT / "docs").iterdir()} - {"reference"} | {"notebooks"}
    command = [sys.executable, "-m", "sphinx", "-q", "-b", "html", str(ROOT / "docs"), str(target)]
    settings = ["root_doc=reference/index", f"exclude_patterns={','.join(sorted(others))}"]
    settings += ["suppress_warnings=myst.xref_missing,ref.doc,toc.not_readable"]
    options = [word for setting in settings for word in ("-D", setting)]
    # From elsewhere: the installed package is what is described, not the folder of its source.
    done = subprocess.run(
        [*command, *options], cwd=target, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")


@pytest.fixture(scope="module")
def site(made_once: MadeOnce) -> Path:
    missing = [name for name in NEEDED if importlib.util.find_spec(name) is None]
    if missing:
        pytest.skip(f"the site cannot be built without {', '.join(missing)}: make docs gets them")
    return made_once("reference", build_site) / "site"


@pytest.fixture(scope="module")
def inventory(site: Path) -> Inventory:
    """Names on the pages, by domain and kind."""
    from sphinx.util.inventory import InventoryFile

    found = InventoryFile.loads((site / "objects.inv").read_bytes(), uri="")
    return {kind: set(names) for kind, names in found.data.items()}


def python_names(inventory: Inventory) -> set[str]:
    return {name for kind, names in inventory.items() if kind[:3] == "py:" for name in names}


@pytest.mark.thorough
def test_every_public_name_and_member_is_on_a_page(inventory):
    public = set()
    for module in MODULES:
        assert module in inventory["py:module"]
        imported = importlib.import_module(module)
        for name in imported.__all__:
            thing = getattr(imported, name)
            public.add(f"{module}.{name}")
            public |= {
                f"{module}.{name}.{member}"
                for member, value in (vars(thing).items() if inspect.isclass(thing) else ())
                if not member.startswith("_")
                and (inspect.isroutine(value) or isinstance(value, property))
                and not inspect.isgetsetdescriptor(value)
            }
    assert sorted(public - python_names(inventory)) == []


@pytest.mark.thorough
def test_no_private_name_is_on_a_page(site):
    text = "".join(path.read_text() for path in site.glob("reference/**/*.html"))
    shown = re.sub(r"<[^>]*>", "", text)
    assert re.findall(r"spead_tutorial\.(?:\w+\.)*_\w+", shown) == []


@pytest.mark.thorough
def test_every_function_type_macro_and_enumerator_of_the_headers_is_on_a_page(inventory):
    functions = set(re.findall(r"^SPT_API\s[^;(]*?(\w+)\(", HEADER, re.M))
    functions |= set(re.findall(r"^SPT_API SPT_MUST_CHECK [^;(]*?(\w+)\(", HEADER, re.M))
    assert len(functions) == HEADER.count("\nSPT_API ")
    types = set(re.findall(r"^typedef (?:struct|enum) (\w+)", HEADER, re.M))
    macros = set(re.findall(r"^#define (SPT_\w+)(?<!_MEMBER)\b", HEADER, re.M))
    enumerators = set(re.findall(r"^ +(SPT_\w+) = |^ +X\((\w+),", HEADER, re.M))
    enumerators = {one or other for one, other in enumerators}
    for names, kinds in (
        (functions, ["function"]),
        (types, ["struct", "enum", "type"]),
        (macros, ["macro"]),
        (enumerators, ["enumerator"]),
    ):
        shown = {name for kind in kinds for name in inventory[f"c:{kind}"]}
        assert names
        assert sorted(names - {name.rpartition(".")[2] for name in shown}) == []


@pytest.mark.thorough
def test_every_member_of_the_headers_structures_is_on_a_page(inventory):
    own = {"spt_packetizer", "spt_rate"}  # their members are private
    missing = []
    for name, body in re.findall(r"^typedef struct (\w+) \{\n(.*?)^\} \1;", HEADER, re.M | re.S):
        code = re.sub(r"/\*.*?\*/", "", body, flags=re.S)
        code = re.sub(r"\(\*(\w+)\)\([^)]*\)", r"\1", code)  # pointers to functions
        members = re.findall(r"(\w+)(?:\[\w+\])?\s*[,;]", code)
        public = [one for one in members if not one.endswith("_") and name not in own]
        missing += [one for one in public if f"{name}.{one}" not in inventory["c:member"]]
    assert missing == []


CPP_HEADERS = sorted((ROOT / "csrc" / "include" / "spead_tutorial").glob("*.hpp"))


@pytest.mark.thorough
@pytest.mark.parametrize("header", CPP_HEADERS, ids=lambda path: path.name)
def test_every_public_name_of_a_cpp_header_is_on_a_page(inventory, header):
    code = re.sub(r"/\*.*?\*/", "", header.read_text(), flags=re.S)
    code = re.sub(r"^namespace detail$.*?^\} // namespace detail", "", code, flags=re.M | re.S)
    code = re.sub(r"^#else$.*?^#endif$", "", code, flags=re.M | re.S)
    kinds = r"(?:class|struct|concept|using|inline constexpr [\w:]+|inline [\w:<>]+)"
    names = set(
        re.findall(rf"^(?:template <.*> )?(?:\[\[nodiscard\]\] )?{kinds} (\w+)\b(?!::)", code, re.M)
    )
    for owner, body in re.findall(r"^(?:class|struct) (\w+)[^;]*?\{\n(.*?)^\};", code, re.M | re.S):
        public = re.sub(r"^  (?:private|protected):.*", "", body, flags=re.M | re.S)
        members = re.findall(r"^    [^ \n~].*?(?<!operator )\b(\w+)\([^;{]*[{;]", public, re.M)
        members = [one for one in members if one.strip("_") == one and one[:4] != "spt_"]
        names |= {f"{owner}::{one}" for one in members if one not in (*NOT_SHOWN, owner)}
    shown = {name.removeprefix("spt::") for kind in inventory for name in inventory[kind]}
    assert len(names) > 10 or "namespace" not in code  # it includes others
    assert sorted(names - shown) == []


@pytest.mark.thorough
def test_types_of_the_standard_headers_are_not_taken_for_int(site):
    text = re.sub(r"<[^>]*>", "", (site / "reference" / "c.html").read_text())
    assert "size_t spt_stream_memory(spt_stream *stream, void *to, size_t size)" in text
    assert "bool spt_completion_done(const spt_completion *completion)" in text
    assert "uint64_t spt_rate_next(spt_rate *r, uint64_t now_ns)" in text


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("program", "module"),
    [("spead-tutorial", "spead_tutorial.tools.cli"), ("python -m bench", "bench.cli")],
)
def test_every_option_of_the_commands_is_on_a_page(inventory, monkeypatch, program, module):
    monkeypatch.setattr(sys, "path", [*sys.path, str(ROOT)])
    group = importlib.import_module(module).cli
    missing = []
    for name, command in group.commands.items():
        if command.hidden:
            continue  # typed by programs alone
        prefix = f"{program} {name}".replace(" ", "-")
        for option in command.params:
            hidden = getattr(option, "hidden", False)
            for word in [] if hidden or isinstance(option, click.Argument) else option.opts:
                if f"{prefix}.{word}" not in inventory["std:cmdoption"]:
                    missing.append(f"{prefix} {word}")
    assert missing == []


@pytest.mark.thorough
def test_every_target_that_make_lists_is_on_a_page(site):
    text = re.sub(r"<[^>]*>", "", (site / "reference" / "command-line.html").read_text())
    targets = re.findall(r"^([a-z-]+):.*## ", (ROOT / "Makefile").read_text(), re.M)
    assert targets
    assert [target for target in targets if f"make {target}" not in text] == []


def test_every_public_name_and_part_of_a_header_is_named_in_the_pages_sources():
    pages = (ROOT / "docs" / "reference").glob("**/*.rst")
    lines = [line for page in pages for line in page.read_text().splitlines()]
    shown, of_module = {}, ""
    for line, after in itertools.pairwise([*lines, ""]):
        directive, _, name = line.removeprefix(".. ").partition(":: ")
        if directive in ("automodule", "currentmodule"):
            of_module = name
            everything = importlib.import_module(name).__all__ if ":members:" in after else []
            shown.setdefault(of_module, set()).update(everything)
        elif directive in ("autoclass", "autodata", "autoexception", "autofunction"):
            shown[of_module].add(name)
    for name in MODULES:
        assert sorted({*importlib.import_module(name).__all__} - shown[name]) == [], name
    parts = {line.partition(":: ")[2] for line in lines if "-part:: " in line}
    for header in (*HEADERS, *CPP_HEADERS):
        titles = re.findall(r"^/\* ---- \d+\. (.+?) -+ \*/$", header.read_text(), re.M)
        assert titles or header.read_text().count("#include") > 1
        assert sorted({*titles} - parts) == [], header


STUB = ast.parse(Path(_core.__file__).with_name("_core.pyi").read_text())
MADE = {
    cls.name: function
    for cls in STUB.body
    if isinstance(cls, ast.ClassDef)
    for function in cls.body
    if isinstance(function, ast.FunctionDef) and function.name in ("__new__", "__init__")
}


@pytest.mark.parametrize("name", MADE)
def test_a_compiled_class_tells_the_signature_that_its_stub_has(name):
    signature = inspect.signature(getattr(_core, name))
    arguments = MADE[name].args
    names = [one.arg for one in (*arguments.args[1:], *arguments.kwonlyargs)]
    defaults = [*arguments.defaults, *arguments.kw_defaults]
    assert list(signature.parameters) == names
    has = [
        one.default
        for one in signature.parameters.values()
        if one.default is not inspect.Parameter.empty
    ]
    assert has == [ast.literal_eval(one) for one in defaults if one is not None]
