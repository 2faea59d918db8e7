# SPDX-License-Identifier: BSD-3-Clause
"""Take the README's screenshots of what ``make tour`` has left: ``screenshots.py TOUR FOLDER``.

Nothing is asked of the network. Look at the pictures before they are committed.
"""

import io
import shutil
import sys
from pathlib import Path

from PIL import Image
from playwright.sync_api import sync_playwright

#: What each shows: a page of the tour, what on it, and how many pixels of what is above that.
SHOTS = {
    "tour": ("index.html", "body", 0),
    "site": ("site/tutorial/8-reuse-memory.html", "#what-changed", 110),
    "notebook": ("notebooks/06_packet_size.html", ".jp-OutputArea-output img", 330),
}
WIDTH, HEIGHT = 1200, 760
SCROLL = "(one, above) => scrollTo(0, one.getBoundingClientRect().top - above)"
QUALITY = 85
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")


def main() -> None:
    tour, folder = map(Path, sys.argv[1:])
    missing = [page for page, *_ in SHOTS.values() if not (tour / page).is_file()]
    if missing:
        sys.exit(f"screenshots: {tour} has no {missing[0]}: make tour writes it")
    program = next(filter(None, map(shutil.which, BROWSERS)), None)
    if program is None:
        sys.exit(f"screenshots: there is no browser: install one of {', '.join(BROWSERS)}")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program)
        context = browser.new_context(
            viewport={"width": WIDTH, "height": HEIGHT}, color_scheme="light", offline=True
        )
        for name, (path, shown, above) in SHOTS.items():
            page = context.new_page()
            page.goto((tour.resolve() / path).as_uri())
            page.locator(shown).first.evaluate(SCROLL, above)
            shot = folder / f"{name}.webp"
            Image.open(io.BytesIO(page.screenshot())).save(shot, quality=QUALITY, method=6)
            print(f"{shot} ({shot.stat().st_size >> 10} KiB)")
        browser.close()


if __name__ == "__main__":
    main()
