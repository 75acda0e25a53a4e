"""The simulator's lexicon: which needs exist, and in which words people put them.

`load_lexicon` reads ``lexicon.toml`` (its head explains the notation) into `Topic` objects. Each
topic has families of needs: an informational one, a navigational one (brands), a transactional
one, and for some topics families whose meaning depends on word order. A need picks one concept, one
entity (an ordered pair of them in the word-order families) and one detail of its family; the
templates turn it into a query or a title.
"""

import functools
import itertools
import re
import tomllib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from importlib import resources
from random import Random
from typing import Any, Generic, TypeAlias, TypeVar

# How much less popular the later entries of a list are: weight 1 / rank ** exponent.
MEANING_EXPONENT = 0.9
TOPIC_EXPONENT = 0.5
# The share of needs that ask for the thing itself (or a brand's home page) and not for a detail.
NO_DETAIL_SHARE = 0.6

# The words of a wording.
Wording: TypeAlias = tuple[str, ...]
# A table of ``lexicon.toml``.
_Table: TypeAlias = dict[str, Any]
_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class WordedMeaning:
    """One meaning with its wordings in queries and in titles, each a tuple of words."""

    query: tuple[Wording, ...]
    title: tuple[Wording, ...]


NOTHING = WordedMeaning(query=((),), title=((),))


@dataclass(frozen=True, slots=True)
class TemplatePart:
    """One part of a template: a literal word, or a slot with the punctuation attached to it."""

    text: str
    slot: str = ""
    keyword: bool = False
    entity_follows: bool = False


Template: TypeAlias = tuple[TemplatePart, ...]


@dataclass(frozen=True, slots=True)
class Weighted(Generic[_T]):
    """A list to draw from by popularity."""

    items: tuple[_T, ...]
    cumulative: tuple[float, ...]

    @classmethod
    def zipf(cls, items: Sequence[_T]) -> "Weighted[_T]":
        return cls.weighted(items, [(rank + 1) ** -MEANING_EXPONENT for rank in range(len(items))])

    @classmethod
    def weighted(cls, items: Sequence[_T], weights: Iterable[float]) -> "Weighted[_T]":
        return cls(tuple(items), tuple(itertools.accumulate(weights)))

    def draw(self, random: Random) -> _T:
        return random.choices(self.items, cum_weights=self.cumulative)[0]


@dataclass(frozen=True, slots=True)
class NeedFamily:
    """The needs of one sort in one topic.

    kind : ``informational``, ``navigational`` or ``transactional``
    order : whether the entity of a need is an ordered pair, so that swapping it is another need
    concepts, entities, details : the meanings that a need picks from
    concept_ranks, entity_ranks, detail_ranks : indices into them by popularity
    query_templates, title_templates : for each detail, the templates (tuples of Part) that word it
    drops_preposition : whether a concept such as "signs of" loses its preposition where no entity
        follows
    field : the name that the topic's brands give their line of business
    """

    topic: str
    kind: str
    order: bool
    concepts: tuple[WordedMeaning, ...]
    entities: tuple[WordedMeaning, ...]
    details: tuple[WordedMeaning, ...]
    concept_ranks: Weighted[int]
    entity_ranks: Weighted[int]
    detail_ranks: Weighted[int]
    query_templates: tuple[Weighted[Template], ...]
    title_templates: tuple[Weighted[Template], ...]
    drops_preposition: bool = False
    field: WordedMeaning = NOTHING


@dataclass(frozen=True, slots=True)
class Topic:
    """A domain of everyday life and its families of needs, the informational one first."""

    name: str
    families: tuple[NeedFamily, ...]


@dataclass(frozen=True, slots=True)
class Lexicon:
    """All topics, most popular first, and the word lists that they share."""

    topics: tuple[Topic, ...]
    function_words: frozenset[str]
    prepositions: frozenset[str]
    small_title_words: frozenset[str]
    acronyms: frozenset[str]
    title_tails: tuple[Wording, ...]
    words: frozenset[str]


@functools.cache
def load_lexicon() -> Lexicon:
    """Read the lexicon that is part of the package."""
    source = resources.files("sentemb.data.simulation").joinpath("lexicon.toml").read_text("utf-8")
    table = tomllib.loads(source)
    topics = tuple(
        _read_topic(name, number, entry, table)
        for number, (name, entry) in enumerate(table["topics"].items())
    )
    return Lexicon(
        topics=topics,
        function_words=frozenset(table["function_words"].split()),
        prepositions=frozenset(table["prepositions"].split()),
        small_title_words=frozenset(table["small_title_words"].split()),
        acronyms=frozenset(table["acronyms"].split()),
        title_tails=tuple(tuple(tail.split()) for tail in table["title_tails"]),
        words=frozenset(
            word
            for topic in topics
            for family in topic.families
            for meaning in (*family.concepts, *family.entities, *family.details)
            for wording in (*meaning.query, *meaning.title)
            for word in wording
        ),
    )


def _read_topic(name: str, number: int, entry: _Table, table: _Table) -> Topic:
    """One topic; ``number`` shuffles which of its brands are well known."""
    shape = table["shapes"][entry["shape"]]
    field = _meaning(entry["field"])
    information = _detailed_family(name, entry, shape, table["shared"], order=False)

    prefixes = table["navigation"]["prefixes"].split()
    brands = []
    for rank in range(len(prefixes)):
        # Seven and the number of prefixes are coprime, so every topic has its own leading brands.
        prefix = prefixes[(7 * number + 13 * rank) % len(prefixes)]
        brands += [_brand(prefix, suffix) for suffix in entry["brands"]]
    navigation = _action_family(
        name, "navigational", brands, [NOTHING], table["navigation"]["pages"], field
    )

    sale = table["transactions"][entry["sells"]]
    transaction = _action_family(
        name,
        "transactional",
        [_meaning(text) for text in entry["goods"]],
        _meanings(sale["entities"], table["shared"]),
        sale["actions"],
        field,
    )
    orders = []
    for order in entry.get("orders", []):
        # Things that only pair within their group: units of length, cities joined by road.
        for entities in order.get("entity_groups") or [order["entities"]]:
            group = {**order, "entities": entities}
            orders.append(_detailed_family(name, group, order, table["shared"], order=True))
    return Topic(name, (information, navigation, transaction, *orders))


def _detailed_family(
    name: str, entry: _Table, shape: _Table, shared: _Table, order: bool
) -> NeedFamily:
    """A family whose templates come with and without a ``{detail}``."""
    concepts = _meanings(entry["concepts"], shared)
    entities = _meanings(entry["entities"], shared)
    details = _meanings(entry["details"], shared)
    detail_weights = [1 / (rank + 1) ** MEANING_EXPONENT for rank in range(len(details))]
    scale = (1 - NO_DETAIL_SHARE) / sum(detail_weights)
    templates = {}
    for side in ("query", "title"):
        parsed = [_template(text) for text in shape[side]]
        plain = _popular_templates(template for template in parsed if not _has_detail(template))
        detailed = _popular_templates(template for template in parsed if _has_detail(template))
        templates[side] = (plain, *[detailed] * len(details))
    return NeedFamily(
        topic=name,
        kind="informational",
        order=order,
        concepts=tuple(concepts),
        entities=tuple(entities),
        details=(NOTHING, *details),
        concept_ranks=Weighted.zipf(range(len(concepts))),
        entity_ranks=Weighted.zipf(range(len(entities))),
        detail_ranks=Weighted.weighted(
            range(len(details) + 1),
            [NO_DETAIL_SHARE] + [scale * weight for weight in detail_weights],
        ),
        query_templates=templates["query"],
        title_templates=templates["title"],
        drops_preposition=shape.get("drops_preposition", False),
    )


def _action_family(
    name: str,
    kind: str,
    concepts: Sequence[WordedMeaning],
    entities: Sequence[WordedMeaning],
    actions: Sequence[_Table],
    field: WordedMeaning,
) -> NeedFamily:
    """A family whose details are actions (log in, buy, ...), each with its own templates."""
    return NeedFamily(
        topic=name,
        kind=kind,
        order=False,
        concepts=tuple(concepts),
        entities=tuple(entities),
        details=(NOTHING,) * len(actions),
        concept_ranks=Weighted.zipf(range(len(concepts))),
        entity_ranks=Weighted.zipf(range(len(entities))),
        detail_ranks=Weighted.weighted(
            range(len(actions)),
            [NO_DETAIL_SHARE] + [(1 - NO_DETAIL_SHARE) / (len(actions) - 1)] * (len(actions) - 1),
        ),
        query_templates=tuple(
            _popular_templates(map(_template, action["query"])) for action in actions
        ),
        title_templates=tuple(
            _popular_templates(map(_template, action["title"])) for action in actions
        ),
        field=field,
    )


def _meanings(entries: str | list[str], shared: _Table) -> list[WordedMeaning]:
    """The meanings of a list, or of the shared list with that name."""
    return [_meaning(text) for text in (shared[entries] if isinstance(entries, str) else entries)]


def _meaning(text: str) -> WordedMeaning:
    """Parse ``"query / query | title / title"``; without ``|`` both share the same wordings."""
    query, _, title = text.partition("|")
    return WordedMeaning(query=_wordings(query), title=_wordings(title or query))


def _wordings(text: str) -> tuple[Wording, ...]:
    return tuple(tuple(wording.split()) for wording in text.split("/"))


def _brand(prefix: str, suffix: str) -> WordedMeaning:
    """A brand's name as people type it and as its own pages write it."""
    name = prefix + suffix
    return WordedMeaning(
        query=((name,), (prefix, suffix), (f"{name}.com",), (f"www.{name}.com",)), title=((name,),)
    )


def _template(text: str) -> Template:
    """Parse one template into its parts."""
    words = text.split()
    parts = []
    for word, following in itertools.zip_longest(words, words[1:], fillvalue=""):
        slot = re.fullmatch(r"\{(\w+)\}(\W*)", word)
        if slot:
            # A brand is the concept of a navigational need.
            name = "concept" if slot[1] == "brand" else slot[1]
            parts.append(
                TemplatePart(slot[2], slot=name, entity_follows=following.startswith("{entity}"))
            )
        else:
            parts.append(TemplatePart(word.removeprefix("+"), keyword=word.startswith("+")))
    return tuple(parts)


def _popular_templates(templates: Iterable[Template]) -> Weighted[Template]:
    """Templates to draw from; short ones are drawn more often, as people use few words."""
    pool = list(templates)
    return Weighted.weighted(pool, [len(template) ** -1.5 for template in pool])


def _has_detail(template: Template) -> bool:
    return any(part.slot == "detail" for part in template)
