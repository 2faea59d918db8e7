# SPDX-License-Identifier: BSD-3-Clause
"""The card that is shown beside a link to the site: what it is about, and what it found.

What shows links takes no SVG, and wants a picture about twice as wide as it is high.
"""

import dataclasses
import importlib.metadata
import io
import textwrap
from pathlib import Path

from matplotlib import get_data_path
from PIL import Image, ImageDraw, ImageFont, ImageOps
from sphinx.application import Sphinx

from bench.figures import RESULTS
from spead_tutorial.measure.records import OURS, read
from spead_tutorial.results import plots

WHERE = "_static/card.png"
SIZE = (1200, 630)
_HEAP_SIZE = 8192
_EDGE = 40
_FONTS = Path(get_data_path(), "fonts", "ttf")


def ladder() -> plots.Rendered:
    """Draw of the ladder's record what the chapters gain with small heaps."""
    found = read(RESULTS / "ladder.jsonl")
    ours = tuple(
        sample
        for sample in found.samples
        if sample.implementation == OURS and sample.heap_size == _HEAP_SIZE
    )
    return plots.render_both(plots.ladder, dataclasses.replace(found, samples=ours), plots.LIGHT)


def card(right: Image.Image) -> Image.Image:
    """Return a picture with words to the left of it."""
    drawn = Image.new("RGB", SIZE, "white")
    right = ImageOps.contain(right, (SIZE[0] // 2, SIZE[1] - 2 * _EDGE))
    drawn.paste(right, (SIZE[0] - _EDGE - right.width, (SIZE[1] - right.height) // 2))
    about = importlib.metadata.metadata("spead-tutorial")["Summary"]
    words, middle = ImageDraw.Draw(drawn), SIZE[1] // 2
    for y, text, font, size in (
        (middle - 160, "spead_tutorial", "DejaVuSans-Bold.ttf", 56),
        (middle - 60, textwrap.fill(about, 24, break_on_hyphens=False), "DejaVuSans.ttf", 34),
    ):
        face = ImageFont.truetype(_FONTS / font, size)
        words.multiline_text((_EDGE, y), text, "black", face, spacing=14)
    return drawn


def write(app: Sphinx) -> None:
    if app.builder.format != "html":
        return
    drawn = ladder()
    path = Path(app.outdir, WHERE)
    path.parent.mkdir(exist_ok=True)
    card(Image.open(io.BytesIO(drawn.png)).convert("RGB")).save(path, optimize=True)
    app.config.ogp_image, app.config.ogp_image_alt = WHERE, drawn.title


def setup(app: Sphinx) -> dict[str, bool]:
    app.connect("builder-inited", write)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
