# SPDX-License-Identifier: BSD-3-Clause
"""The picture that is shown beside a link to the site: what it found.

What shows links takes no SVG, and wants a picture about twice as wide as it is high.
"""

import dataclasses
import io
from pathlib import Path

from PIL import Image, ImageOps
from sphinx.application import Sphinx

from bench.figures import RESULTS
from spead_tutorial.measure.records import OURS, read
from spead_tutorial.results import plots

WHERE = "_static/card.png"
SIZE = (1200, 630)
_HEAP_SIZE = 8192


def ladder() -> plots.Rendered:
    """Draw of the ladder's record what the chapters gain with small heaps."""
    found = read(RESULTS / "ladder.jsonl")
    ours = tuple(
        sample
        for sample in found.samples
        if sample.implementation == OURS and sample.heap_size == _HEAP_SIZE
    )
    return plots.render_both(plots.ladder, dataclasses.replace(found, samples=ours), plots.LIGHT)


def write(app: Sphinx) -> None:
    if app.builder.format != "html":
        return
    drawn = ladder()
    path = Path(app.outdir, WHERE)
    path.parent.mkdir(exist_ok=True)
    picture = Image.open(io.BytesIO(drawn.png)).convert("RGB")
    ImageOps.pad(picture, SIZE, color="white").save(path, optimize=True)
    app.config.ogp_image, app.config.ogp_image_alt = WHERE, drawn.title


def setup(app: Sphinx) -> dict[str, bool]:
    app.connect("builder-inited", write)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
