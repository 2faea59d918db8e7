# SPDX-License-Identifier: BSD-3-Clause
"""How the site is built: ``make docs``."""

import importlib.metadata
import os
import sys
from pathlib import Path

from spead_tutorial.measure.records import SCHEMA

DOCS = Path(__file__).resolve().parent
ROOT = DOCS.parent
sys.path.insert(0, str(DOCS / "_ext"))
# At the end: what is described is the installed package, not the folder of its source, which has
# no compiled core. The harness is only there.
sys.path.append(str(ROOT))
# So do the programs whose output pages show: ``python`` is the one that builds the site.
os.environ["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
# It takes seconds to import; what reads notebooks checks addresses of the web with it, or does
# without.
sys.modules.setdefault("rfc3987_syntax", None)  # type: ignore[arg-type]

project = "spead_tutorial"
author = "the spead_tutorial developers"
copyright = f"{author}, BSD-3-Clause"
version = release = importlib.metadata.version("spead-tutorial")
language = "en"

extensions = [
    "headers",
    "listings",
    "measured",
    "measured_runs",
    "measured_tables",
    "myst_nb",
    "notebook_pages",
    "numpydoc",
    "pictures",
    "playable",
    "public_names",
    "sphinx.ext.autodoc",
    "sphinx_click",
    "sphinx_copybutton",
    "sphinx_design",
    "sphinxcontrib.programoutput",
    "splits",
    "tables",
    "theme",
]
nitpicky = True
# Names of the C library and of others' packages: they are described there, and the site has no
# links that take a network to check.
nitpick_ignore_regex = [
    ("c:identifier", r"u?int\d+_t|size_t|iovec"),
    # What is of C in declarations of C++ is on the pages of C; and all of it is in spt.
    ("cpp:identifier", r"spt|spt_\w+|SPT_\w+|iovec"),
    (
        "py:class",
        r"spead_tutorial\.(measure\.(case|corner_turn)|results\.plots\.(sweep|picture))\.\w+",
    ),
    ("py:class", r"spead_tutorial\.measure\.records\._Kind"),
    (
        "py:class",
        r"(asyncio|collections\.abc|contextlib|numpy|pandas|pathlib|socket|subprocess)\.\w+",
    ),
]
smartquotes = False
highlight_language = "none"
rst_prolog = f".. |schema| replace:: {SCHEMA}"

# ---- Markdown and notebooks: their outputs are those that are stored, of a real run ----
myst_enable_extensions = ["attrs_block", "attrs_inline", "colon_fence", "deflist"]
myst_heading_anchors = 3
nb_execution_mode = "off"
nb_merge_streams = True
nb_render_markdown_format = "myst"
nb_code_prompt_show = "Show the code"
nb_code_prompt_hide = "Hide the code"

# ---- Python ----
autodoc_member_order = "bysource"
numpydoc_show_class_members = False
numpydoc_class_members_toctree = False
numpydoc_validation_checks = {"GL06", "GL07", "PR01", "PR02", "PR03", "PR05", "PR07", "RT03"}
# Classes that nobody makes, or with a signature that is only in words; and data, which is no class.
# Of a class that is no more than its fields, each of these says what it is.
numpydoc_validation_exclude = {
    r"\.(Accounting|Arrivals|Chapter|Counters|Disturbed|Estimate|Journey|LabProbe|Receiver|Rung)$",
    r"\.(ArrayMachine|ChunkStreamGroupStats|DARK|Disturbance|EvictionMode|GroupMode|Interval|LIGHT|LabMachine|LabProcess|LabReceiver|RateMethod|TcpStream|UdpStream)$",
    r"^spead_tutorial\.notebook\.",
    r"^spead_tutorial\.measure\.",
}
numpydoc_xref_param_type = True
numpydoc_xref_ignore = "all"

# ---- HTML ----
html_theme = "pydata_sphinx_theme"
html_title = "spead_tutorial"
html_favicon = "_static/icon.svg"
html_static_path = ["_static"]
html_css_files = ["site.css", "figures.css"]
html_js_files = ["site.js", "figures.js"]
html_show_sourcelink = False
html_copy_source = False
html_context = {"default_mode": "auto"}
html_sidebars = {"results": [], "machines": []}  # a section with hardly anything to lead to
html_theme_options = {
    "header_links_before_dropdown": 6,
    "navigation_with_keys": False,
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
    "secondary_sidebar_items": {"**": ["page-toc"], "index": []},
    "show_toc_level": 2,
    "footer_start": ["copyright"],
    "footer_end": ["sphinx-version"],
    "logo": {"text": "spead_tutorial"},
}
copybutton_exclude = ".linenos, .gp"
copybutton_prompt_text = r"\$ |>>> "
copybutton_prompt_is_regexp = True
