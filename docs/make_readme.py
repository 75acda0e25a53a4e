"""Fill console blocks of README.md and docs/ from the demo, and draw the figures of README.md.

docs/figures/words.png is drawn, docs/gates.png is the demo's, and docs/figures/search.png is taken
of the demo's search page in Chromium.

make demo
python docs/make_readme.py
"""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("**/*.md"))]
DEMO = ROOT / "demo"
FIGURES = ROOT / "docs" / "figures"
QUERY = "cheap hotel in paris"
TITLES = ("Affordable Lodging in Paris", "Paris Hair Salons")
BLUE, ORANGE = (0.0, 0.45, 0.70), (0.84, 0.37, 0.0)  # safe for colour-blind eyes


def filled(text: str, folder: Path) -> str:
    """A page with the output of every command in a console block, run in ``folder``, below it."""
    return re.sub(
        r"(?<=```console\n)(.*?)(?=```)", lambda match: _console(match[1], folder), text, flags=re.S
    )


def _console(block, folder):
    commands = [line[2:] for line in block.splitlines() if line.startswith("$ ")]
    return "".join(f"$ {command}\n{_output(command, folder)}" for command in commands)


def _output(command, folder):
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    run = subprocess.run(
        command,
        shell=True,
        cwd=folder,
        env={**os.environ, "PATH": path},
        check=True,
        stdout=subprocess.PIPE,
        text=True,
    )
    return run.stdout.rstrip() + "\n" if run.stdout else ""


def draw_words(model, path):
    """The cosines of `QUERY` and `TITLES`, each word shaded by what it adds to them."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    from sentemb.analysis.attribution import word_effects

    figure, axes = pyplot.subplots(len(TITLES), 1, figsize=(7, 3.4))
    for axis, title in zip(axes, TITLES, strict=True):
        effects = word_effects(model, QUERY, title)
        for y, label, effect in ((1, "query", effects["query"]), (0, "title", effects["document"])):
            axis.text(0, y, label, color="#555555", va="center")
            x = 1.0
            for word, change in zip(effect.words, effect.left_out.tolist(), strict=True):
                width = 0.32 + 0.135 * len(word)
                colour = BLUE if change > 0 else ORANGE
                shade = (*colour, min(1.0, 1.6 * abs(change)))
                axis.add_patch(pyplot.Rectangle((x, y - 0.28), width, 0.62, color=shade, lw=0))
                axis.text(x + width / 2, y + 0.13, word, ha="center", va="center", fontsize=11)
                axis.text(
                    x + width / 2, y - 0.15, f"{change:+.2f}", ha="center", va="center", fontsize=8
                )  # fmt: skip
                x += width + 0.12
        axis.text(
            7.6, 0.65, f"{model.score(QUERY, title):.2f}", ha="center", va="center", fontsize=20
        )
        axis.text(7.6, 0.15, "cosine", ha="center", va="center", color="#555555")
        axis.set_xlim(0, 8.2)
        axis.set_ylim(-0.4, 1.5)
        axis.axis("off")
    figure.text(
        0.5, 0.02, "shaded blue: the word raises the cosine; orange: it lowers it",
        ha="center", color="#555555", fontsize=9,
    )  # fmt: skip
    figure.subplots_adjust(left=0.02, right=0.98, top=1, bottom=0.08, hspace=0.15)
    figure.savefig(path, dpi=120, metadata={"Software": None})
    pyplot.close(figure)


def picture_search(page, path):
    """A picture of the exported search page: a query, and why its first title was found."""
    sys.path.insert(0, str(ROOT / "tests"))
    from browsers import chromium, opened

    window = {"viewport": {"width": 860, "height": 620}, "device_scale_factor": 1.5}
    with chromium() as browser, opened(browser, page.as_uri(), **window) as tab:
        tab.locator("#query").fill(QUERY)
        tab.locator("#results li").first.wait_for()
        tab.keyboard.press("ArrowDown")
        tab.keyboard.press("Enter")
        tab.locator("text=What each word does").first.wait_for()
        tab.screenshot(path=path)


def main():
    from sentemb import SentenceEncoder

    for page in PAGES:
        if "```console" in (text := page.read_text(encoding="utf-8")):
            page.write_text(filled(text, ROOT), encoding="utf-8")
    draw_words(SentenceEncoder.from_pretrained(DEMO / "model"), FIGURES / "words.png")
    shutil.copy(DEMO / "gates.png", ROOT / "docs" / "gates.png")
    picture_search(DEMO / "page.html", FIGURES / "search.png")


if __name__ == "__main__":
    main()
