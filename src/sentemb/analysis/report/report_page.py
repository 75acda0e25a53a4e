"""The HTML report: where a model ranks badly and why, what the model is, how it learned.

`collect` gathers the numbers as one dict that JSON can hold. `page` fills the template in this
folder, ``report.html``, with them; its style sheet and scripts draw everything in the browser and
load nothing.
"""

import html
from collections.abc import Mapping, Sequence
from typing import Any

from sentemb.analysis.report.facts import dev_facts, shown_history, training_facts
from sentemb.analysis.report.matches import collect_matches, scorer_facts
from sentemb.analysis.report.page_pairs import ShownPair, worst_pairs
from sentemb.analysis.report.rankings import collect_rankings
from sentemb.analysis.report.sheet import style
from sentemb.analysis.report.tower_sections import collect_towers, model_facts
from sentemb.analysis.triage import Triage
from sentemb.models.pair_scorer import PairScorer
from sentemb.models.sentence_encoder import SentenceEncoder
from sentemb.system.html_pages import Page, filled, json_data, resource, script
from sentemb.training.negatives.look_ups import epochs_of
from sentemb.version import __version__

_HERE = "sentemb.analysis.report"
_SCRIPTS = ("report.js", "model.js", "heat_maps.js", "rankings.js", "start.js")


def triage_report(model: SentenceEncoder | PairScorer, name: str, triage: Triage) -> dict[str, Any]:
    """The contents of the page of a `Triage`, as a JSON-serialisable dict.

    ``model`` ranked; of an index it is its model. The page calls it ``name``.
    """
    pairs, of_query = worst_pairs(model, triage)
    report = collect(model, name, pairs, list(dict.fromkeys(triage.queries)))
    return {**report, "triage": collect_rankings(triage, of_query)}


def collect(
    model: SentenceEncoder | PairScorer,
    name: str,
    pairs: Sequence[ShownPair],
    queries: Sequence[str],
) -> dict[str, Any]:
    """The contents of the page of some pairs, as a JSON-serialisable dict.

    The page calls the model ``name`` and shows ``pairs`` in detail. The cells of two towers collect
    words from the first 5,000 ``queries``.
    """
    if isinstance(model, PairScorer):
        kind, (summary, facts), sections = (
            "pair",
            scorer_facts(model),
            collect_matches(model, pairs),
        )
    else:
        kind, (summary, facts) = "towers", model_facts(model)
        sections = collect_towers(model, pairs, queries)
    history = shown_history(model.history)
    return {
        "kind": kind,
        "made": f"Made by sentemb {__version__}.",
        "model": {
            "name": name,
            "summary": summary,
            "facts": [*facts, *dev_facts(history)],
            "training": training_facts(model.training),
        },
        "history": history,
        "ranked": epochs_of(model.history, model.training),
        "triage": None,
        **sections,
    }


def page(report: Mapping[str, Any]) -> Page:
    """The HTML of a report that `collect` or `triage_report` made.

    The texts cannot become markup; see `json_data`. A content security policy allows only this
    style sheet and this script, and lets nothing load.
    """
    values = {
        "title": html.escape(f"{report['model']['name']} – sentemb report"),
        "style": style() + resource(_HERE, "rankings.css"),
        "script": script(_HERE, *_SCRIPTS),
        "data": json_data(report),
    }
    return filled(resource(_HERE, "report.html"), values)
