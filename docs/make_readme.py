"""Fill README.md from the demo's model: outputs of its console blocks, and its two figures.

docs/figures/words.png is drawn; docs/figures/search.png is taken of the search page in Chromium.

make demo
python docs/make_readme.py [--demo demo]
"""

import argparse
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
README = ROOT / "README.md"
FIGURE = ROOT / "docs" / "figures" / "words.png"
SCREENSHOT = ROOT / "docs" / "figures" / "search.png"
QUERY = "cheap hotel in paris"
TITLES = ("Affordable Lodging in Paris", "Paris Hair Salons")
BLUE, ORANGE = (0.0, 0.45, 0.70), (0.84, 0.37, 0.0)  # safe for colour-blind eyes


def filled(text, demo):
    """README's text with the output of every command in a console block below the command."""
    return re.sub(
        r"(?<=```console\n)(.*?)(?=```)", lambda found: _console(found[1], demo), text, flags=re.S
    )


def _console(block, demo):
    commands = [line[2:] for line in block.splitlines() if line.startswith("$ ")]
    return "".join(f"$ {command}\n{_output(command, demo)}" for command in commands)


def _output(command, demo):
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    run = subprocess.run(
        command.replace(" demo/", f" {demo}/"),
        shell=True,
        env={**os.environ, "PATH": path},
        check=True,
        stdout=subprocess.PIPE,
        text=True,
    )
    return run.stdout.rstrip() + "\n"


def draw_words(model, path):
    """The scores of `TITLES` for `QUERY`, each word shaded by what it adds to the score."""
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
        axis.text(7.6, 0.15, "score", ha="center", va="center", color="#555555")
        axis.set_xlim(0, 8.2)
        axis.set_ylim(-0.4, 1.5)
        axis.axis("off")
    figure.text(
        0.5, 0.02, "shaded blue: the word raises the score; orange: it lowers it",
        ha="center", color="#555555", fontsize=9,
    )  # fmt: skip
    figure.subplots_adjust(left=0.02, right=0.98, top=1, bottom=0.08, hspace=0.15)
    figure.savefig(path, dpi=120, metadata={"Software": None})
    pyplot.close(figure)


def picture_search(demo, path):
    """A picture of the exported search page: a query, and why its first title was found."""
    from sentemb import Index, SentenceEncoder, export
    from sentemb.data.judged_set import read_judged_set

    sys.path.insert(0, str(ROOT / "tests"))
    from browsers import chromium, opened

    judged = read_judged_set(demo / "log/test")
    model = SentenceEncoder.from_pretrained(demo / "model")
    with tempfile.TemporaryDirectory() as folder:
        page = Path(folder) / "search.html"
        export(Index.build(model, judged.titles, judged.title_ids), page, "page", heading="Demo")
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

    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--demo", type=Path, default=ROOT / "demo", help="folder of `make demo`")
    demo = parser.parse_args().demo
    README.write_text(filled(README.read_text(encoding="utf-8"), demo), encoding="utf-8")
    FIGURE.parent.mkdir(exist_ok=True)
    draw_words(SentenceEncoder.from_pretrained(demo / "model"), FIGURE)
    picture_search(demo, SCREENSHOT)


if __name__ == "__main__":
    main()
