# SPDX-License-Identifier: BSD-3-Clause
"""Everything public is on a page of the reference.

The site makes the pages of docstrings and headers: so those are looked at, and whether the pages'
sources name them.
"""

import importlib
import inspect
import itertools
import re
from collections import Counter
from pathlib import Path

import pytest

from spead_tutorial import MemoryPool
from support import ROOT
from support.site import extension

C_HEADERS, CPP_HEADERS = (
    sorted((ROOT / "csrc" / "include" / "spead_tutorial").glob(end)) for end in ("*.h", "*.hpp")
)
NAMES = """
chapters.catalogue lab notebook measure.records send send.asyncio measure.stats wire measure.place
measure.programs
"""
MODULES = ["spead_tutorial", *(f"spead_tutorial.{name}" for name in NAMES.split())]
#: What members of C++ classes are there for the language, or for a template beside them.
NOT_SHOWN = ("awaiter",)


def members(thing):
    """The members of a class, if it is one, of which there is more to say than a type."""
    for name, value in vars(thing).items() if inspect.isclass(thing) else ():
        says_more = inspect.isroutine(value) or isinstance(value, property)
        if name[0] != "_" and says_more and not inspect.isgetsetdescriptor(value):
            yield name, value


def test_every_public_name_and_part_of_a_header_is_named_in_the_pages_sources():
    pages = (ROOT / "docs" / "reference").glob("**/*.rst")
    lines = [line for page in pages for line in page.read_text().splitlines()]
    shown, without, of_module = {}, set(), ""
    for line, after in itertools.pairwise([*lines, ""]):
        directive, _, name = line.removeprefix(".. ").partition(":: ")
        if directive in ("automodule", "currentmodule"):
            of_module = name
            everything = importlib.import_module(name).__all__ if ":members:" in after else []
            shown.setdefault(of_module, set()).update(everything)
        elif directive in ("autoclass", "autodata", "autoexception", "autofunction"):
            shown[of_module].add(name)
            if ":members:" not in after:
                without.add((of_module, name))
    for name in MODULES:
        module = importlib.import_module(name)
        assert sorted({*module.__all__} - shown[name]) == [], name
        for public in module.__all__:
            for member, value in members(getattr(module, public)):
                assert (name, public) not in without, f"{name}.{public} has no members there"
                assert inspect.getdoc(value), f"{name}.{public}.{member} has no docstring"
    parts = {line.partition(":: ")[2] for line in lines if "-part:: " in line}
    for header in (*C_HEADERS, *CPP_HEADERS):
        titles = re.findall(r"^/\* ---- \d+\. (.+?) -+ \*/$", header.read_text(), re.M)
        assert titles or header.read_text().count("#include") > 1
        assert sorted({*titles} - parts) == [], header


def words_of(header: Path, kind: str = "") -> Counter[str]:
    """The words of all declarations, or of those of a kind, that the pages have of a header."""
    language = {".h": "c", ".hpp": "cpp"}[header.suffix]
    entries = extension("headers").entries(header.read_text(), language)
    shown = [entry.declaration for entry in entries if kind in ("", entry.kind)]
    return Counter(re.findall(r"\w+", " ".join(shown)))


def code_of(header: Path) -> str:
    return re.sub(r"/\*.*?\*/", "", header.read_text(), flags=re.S)


@pytest.mark.parametrize("header", C_HEADERS, ids=lambda path: path.name)
def test_all_that_a_header_of_c_declares_is_described(header):
    code = code_of(header)
    names = re.findall(r"^SPT_API [^;(]*?(\w+)\(", code, re.M)
    assert len(names) == code.count("\nSPT_API ")
    names += re.findall(r"^typedef (?:struct|enum) (\w+)", code, re.M)
    names += re.findall(r"^#define (SPT_\w+)(?<!_MEMBER)\b", code, re.M)
    names += re.findall(r"^ +(?:X\()?(SPT_\w+)(?: = |,)", code, re.M)
    assert Counter(names) - words_of(header) == Counter()
    found = []
    for name, body in re.findall(r"^typedef struct (\w+) \{\n(.*?)^\} \1;", code, re.M | re.S):
        body = re.sub(r"\(\*(\w+)\)\([^)]*\)", r"\1", body)  # pointers to functions
        if name not in ("spt_packetizer", "spt_rate"):  # their members are private
            found += re.findall(r"(\w+)(?<!_)(?:\[\w+\])?\s*[,;]", body)
    assert Counter(found) - words_of(header, "member") == Counter()


@pytest.mark.parametrize("header", CPP_HEADERS, ids=lambda path: path.name)
def test_every_public_name_of_a_header_of_cpp_is_described(header):
    code = re.sub(
        r"^namespace detail$.*?^\} // namespace detail|^#else$.*?^#endif$",
        "",
        code_of(header),
        flags=re.M | re.S,
    )
    kinds = r"(?:class|struct|concept|using|inline constexpr [\w:]+|inline [\w:<>]+)"
    names = re.findall(
        rf"^(?:template <.*> )?(?:\[\[nodiscard\]\] )?{kinds} (\w+)\b(?!::|;)", code, re.M
    )
    for owner, body in re.findall(r"^(?:class|struct) (\w+)[^;]*?\{\n(.*?)^\};", code, re.M | re.S):
        public = re.sub(r"^  (?:private|protected):.*", "", body, flags=re.M | re.S)
        found = re.findall(r"^    [^ \n~].*?(?<!operator )\b(\w+)\([^;{]*[{;]", public, re.M)
        found = [one for one in found if one.strip("_") == one and one[:4] != "spt_"]
        names += [one for one in found if one not in (*NOT_SHOWN, owner)]
    assert names or "namespace" not in code  # it includes others
    assert sorted({*names} - {*words_of(header)}) == []


def test_a_memory_pool_tells_the_longer_of_its_two_forms():
    """What all other compiled classes tell, stubtest compares with the stub."""
    expected = "(thread_pool, lower, upper, max_free, initial, low_water, allocator=None)"
    assert str(inspect.signature(MemoryPool)) == expected
