"""The simulator's world: needs, queries and titles that express them, and the true grades.

A need (`Need`) is a point of the lexicon: a family, a concept, an entity and a detail. `World`
draws needs by popularity, expresses them as queries and as titles, and knows the true grade of
every title for every need, because it knows which need each text came from.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from random import Random
from typing import NamedTuple, TypeAlias, cast

from sentemb.data.simulation.lexicon import (
    TOPIC_EXPONENT,
    NeedFamily,
    Template,
    Weighted,
    WordedMeaning,
    Wording,
    load_lexicon,
)

BAD, FAIR, GOOD, EXCELLENT = range(4)
MAX_QUERY_WORDS = 10
MIN_TITLE_WORDS, MAX_TITLE_WORDS = 5, 13
SHORTEST_MISSPELT_WORD = 4
# Enough to find titles of other topics once some exist.
MAX_STRANGER_DRAWS = 20
# The share of titles that end in "- tips and guide" or similar although they are long enough.
TAIL_SHARE = 0.15
MAX_WORDS_WITH_TAIL = 11
# The shares of titles in lower case and in sentence case; the others are in headline case.
LOWER_CASE_SHARE, SENTENCE_CASE_SHARE = 0.08, 0.12
# How often a searcher uses the wording of a title.
TITLE_WORDING_SHARE = 0.25
# Later wordings of a meaning are used less.
WORDING_WEIGHTS = tuple((rank + 1) ** -0.5 for rank in range(8))

NEIGHBOUR_KEYS = {
    "q": "wa", "w": "qes", "e": "wrd", "r": "etf", "t": "ryg", "y": "tuh", "u": "yij", "i": "uok",
    "o": "ipl", "p": "ol", "a": "qsz", "s": "adwx", "d": "sfec", "f": "dgrv", "g": "fhtb",
    "h": "gjyn", "j": "hkum", "k": "jlim", "l": "kop", "z": "xas", "x": "zcsd", "c": "xvdf",
    "v": "cbfg", "b": "vngh", "n": "bmhj", "m": "nkj",
}  # fmt: skip


class Need(NamedTuple):
    """The need of a searcher, or the need that a page serves; indices into the lexicon.

    ``entity`` is an index, or an ordered pair of indices in a word-order family.
    """

    topic: int
    family: int
    concept: int
    entity: int | tuple[int, int]
    detail: int


@dataclass(frozen=True, slots=True)
class WorldText:
    """A query or a title, the need that it expresses and its keywords as they are spelt in it.

    ``intended`` are the keywords before a misspelling, in lower case. ``name`` says that a query is
    words of one title.
    """

    text: str
    need: Need
    keywords: tuple[str, ...]
    intended: tuple[str, ...]
    misspelt: bool = False
    name: bool = False


# The words of a text, each with whether it is a keyword.
_Words: TypeAlias = list[tuple[str, bool]]
# The wording chosen for each slot of a template, and for each entity of a pair by its index.
_Wordings: TypeAlias = dict[str | int, Wording]


def grade(need: Need, offered: Need) -> int:
    """The true grade, `BAD` to `EXCELLENT`, of a page's need for a searcher's need.

    Excellent: the same need. Good: the same concept and entity (in the same order) with another
    detail, an added or a missing one. Fair: the same topic. Bad: another topic.
    """
    if need.topic != offered.topic:
        return BAD
    if need[:4] != offered[:4]:
        return FAIR
    return EXCELLENT if need.detail == offered.detail else GOOD


class World:
    """Everything that has been asked and published so far; drawing from it adds to it.

    ``random`` is the only source of randomness.
    """

    def __init__(self, random: Random) -> None:
        self.random = random
        self.lexicon = load_lexicon()
        self.queries: dict[str, WorldText] = {}
        self.titles: list[WorldText] = []
        self._titles_of_need: dict[Need, list[int]] = {}
        self._title_texts: set[str] = set()
        self._titles_with_word: dict[str, list[int]] = {}
        self._families = self._families_by_sort()

    # ------------------------------------------------------------------------------------ needs

    def _families_by_sort(self) -> dict[str, Weighted[tuple[int, int]]]:
        """For each sort of query, the (topic, family) indices by popularity of the topic."""
        sorts: dict[str, list[tuple[int, int]]] = {
            "informational": [],
            "navigational": [],
            "transactional": [],
            "order": [],
        }
        for number, topic in enumerate(self.lexicon.topics):
            for index, family in enumerate(topic.families):
                sorts["order" if family.order else family.kind].append((number, index))
        weighted = {}
        for sort, indices in sorts.items():
            # The families of a topic share its popularity, which depends on its rank in the sort.
            sizes = Counter(topic for topic, _ in indices)
            ranks = {topic: rank for rank, topic in enumerate(sizes, 1)}
            weights = [ranks[topic] ** -TOPIC_EXPONENT / sizes[topic] for topic, _ in indices]
            weighted[sort] = Weighted.weighted(indices, weights)
        return weighted

    def family(self, need: Need) -> NeedFamily:
        """The family that a need belongs to."""
        return self.lexicon.topics[need.topic].families[need.family]

    def draw_need(self, sort: str) -> Need:
        """Draw a need of the sort informational, navigational, transactional or order."""
        topic, index = self._families[sort].draw(self.random)
        family = self.lexicon.topics[topic].families[index]
        entity: int | tuple[int, int] = family.entity_ranks.draw(self.random)
        if isinstance(entity, int) and family.order:
            entity = (entity, _draw_except(family.entity_ranks, entity, self.random))
        concept = family.concept_ranks.draw(self.random)
        return Need(topic, index, concept, entity, family.detail_ranks.draw(self.random))

    def other_details(self, need: Need, count: int) -> list[Need]:
        """Up to ``count`` needs that differ from ``need`` only in the detail: Good."""
        rest = [detail for detail in range(len(self.family(need).details)) if detail != need.detail]
        chosen = self.random.sample(rest, min(count, len(rest)))
        # The page without detail answers almost every detailed need; engines show it first.
        if need.detail and 0 not in chosen and chosen:
            chosen[0] = 0
        return [need._replace(detail=detail) for detail in chosen]

    def relatives(self, need: Need, count: int) -> list[Need]:
        """``count`` needs of the same topic that are easily confused with ``need``: Fair.

        They share its concept or its entity, and therefore most of its words.
        """
        family, random = self.family(need), self.random
        related = []
        for number in range(count):
            concept, entity = need.concept, need.entity
            if family.order and number % 2:
                entity = self._half_other_pair(_pair(need), family)
            elif number % 2 and len(family.entities) > 1:
                entity = _draw_except(family.entity_ranks, _single(need), random)
            elif len(family.concepts) > 1:
                concept = _draw_except(family.concept_ranks, concept, random)
            else:
                entity = self._half_other_pair(_pair(need), family)
            detail = need.detail if random.random() < 0.5 else family.detail_ranks.draw(random)
            related.append(need._replace(concept=concept, entity=entity, detail=detail))
        return related

    def _half_other_pair(self, pair: tuple[int, int], family: NeedFamily) -> tuple[int, int]:
        """A pair that shares one end with ``pair``."""
        drawn = pair[0]
        while drawn in pair:
            drawn = family.entity_ranks.draw(self.random)
        return (pair[0], drawn) if self.random.random() < 0.5 else (drawn, pair[1])

    @staticmethod
    def reversed(need: Need) -> Need:
        """The need with its two entities swapped."""
        a, b = _pair(need)
        return need._replace(entity=(b, a))

    # ---------------------------------------------------------------------------------- queries

    def draw_query(self, sort: str, misspelt: bool, need: Need | None = None) -> WorldText | None:
        """Draw a query of the sort, misspelt or not; the same text is the same object.

        ``need`` is what it expresses; by default it is drawn. Returns None if the draw fails: the
        text already expresses another need, is too long, or has no word to misspell.
        """
        need = need or self.draw_need(sort)
        family = self.family(need)
        template = family.query_templates[need.detail].draw(self.random)
        words = self._fill(template, family, self._choose_wordings(need, "query"), need)
        if len(words) > MAX_QUERY_WORDS:
            return None
        intended = _keywords(words)
        if misspelt:
            mistyped = self._misspell(words)
            if mistyped is None:
                return None
            words = mistyped
        query = WorldText(_joined(words), need, _keywords(words), intended, misspelt)
        known = self.queries.setdefault(query.text, query)
        return known if known == query else None

    def name_query(self, words: tuple[str, ...], title: WorldText) -> WorldText | None:
        """The query for a title by words that no other title has; None if the text is known."""
        query = WorldText(" ".join(words), title.need, words, words, name=True)
        return query if self.queries.setdefault(query.text, query) is query else None

    def _misspell(self, words: _Words) -> _Words | None:
        """The words with one keyword mistyped; None if no keyword can be."""
        positions = [
            position
            for position, (word, keyword) in enumerate(words)
            if keyword and len(word) >= SHORTEST_MISSPELT_WORD and word.isalpha()
        ]
        if not positions:
            return None
        position = self.random.choice(positions)
        wrong = mistype(words[position][0], self.random)
        if wrong in self.lexicon.words or wrong in self.lexicon.function_words:
            return None
        return words[:position] + [(wrong, True)] + words[position + 1 :]

    # ----------------------------------------------------------------------------------- titles

    def titles_of(self, need: Need, count: int) -> list[int]:
        """Indices into `titles` of ``count`` pages about exactly ``need``, published on demand.

        Fewer if the lexicon has no more wordings.
        """
        titles = self._titles_of_need.setdefault(need, [])
        if len(titles) < count:
            self._publish(need, count)
        return titles[:count]

    def _publish(self, need: Need, count: int) -> None:
        """Write titles until ``need`` has ``count``; in word-order families also for its reverse.

        The reverse gets the same titles with the entities swapped, so that every title has a twin
        with the same words in another order.
        """
        twins = (need, self.reversed(need)) if self.family(need).order else (need,)
        for _ in range(3 * count):
            if len(self._titles_of_need[need]) == count:
                break
            written = self._write_titles(twins)
            texts = {title.text.lower() for title in written}
            too_long = len(written[0].text.split()) > MAX_TITLE_WORDS
            if not too_long and len(texts) == len(twins) and not texts & self._title_texts:
                self._title_texts |= texts
                for title in written:
                    self._add_title(title)

    def _write_titles(self, needs: Sequence[Need]) -> list[WorldText]:
        """One title for each of ``needs``, with the same template, wordings and letter case."""
        family, random = self.family(needs[0]), self.random
        template = family.title_templates[needs[0].detail].draw(random)
        wordings = self._choose_wordings(needs[0], "title")
        tail = random.choice(self.lexicon.title_tails)
        divided = any(part.text in {"-", "|", ":"} for part in template)
        wants_tail = random.random() < TAIL_SHARE and not divided
        style = random.random()
        texts = []
        for need in needs:
            words = self._fill(template, family, wordings, need)
            if len(words) < MIN_TITLE_WORDS or (
                wants_tail and len(words) + len(tail) <= MAX_WORDS_WITH_TAIL
            ):
                words = words + [(word, False) for word in tail]
            shown = self._capitalise(words, style)
            texts.append(WorldText(_joined(shown), need, _keywords(shown), _keywords(words)))
        return texts

    def _add_title(self, title: WorldText) -> None:
        index = len(self.titles)
        self.titles.append(title)
        self._titles_of_need.setdefault(title.need, []).append(index)
        for word in dict.fromkeys(title.intended):
            self._titles_with_word.setdefault(word, []).append(index)

    def _capitalise(self, words: _Words, style: float) -> _Words:
        """Mostly headline case, some sentence case, some lower case."""
        if style < LOWER_CASE_SHARE:
            return words
        headline = style > LOWER_CASE_SHARE + SENTENCE_CASE_SHARE
        small, acronyms = self.lexicon.small_title_words, self.lexicon.acronyms
        shown = []
        for index, (word, keyword) in enumerate(words):
            if word.rstrip(":") in acronyms:
                word = word.upper()
            elif index == 0 or (headline and word not in small):
                word = word[0].upper() + word[1:]
            shown.append((word, keyword))
        return shown

    # -------------------------------------------------------------------------- words of a text

    def _choose_wordings(self, need: Need, side: str) -> _Wordings:
        """A wording for each slot; ``side`` is "query" or "title"."""
        family = self.family(need)
        meanings: dict[str | int, WordedMeaning] = {
            "concept": family.concepts[need.concept],
            "detail": family.details[need.detail],
            "field": family.field,
        }
        if family.order:
            meanings.update((entity, family.entities[entity]) for entity in _pair(need))
        else:
            meanings["entity"] = family.entities[_single(need)]
        chosen: _Wordings = {}
        for slot, meaning in meanings.items():
            options = meaning.title
            if side == "query" and self.random.random() > TITLE_WORDING_SHARE:
                options = meaning.query
            weights = WORDING_WEIGHTS[: len(options)]
            chosen[slot] = (
                options[0] if len(options) == 1 else self.random.choices(options, weights)[0]
            )
        return chosen

    def _fill(
        self, template: Template, family: NeedFamily, wordings: _Wordings, need: Need
    ) -> _Words:
        """The words of a text, each with whether it is a keyword."""
        if family.order:
            a, b = _pair(need)
            wordings = {**wordings, "a": wordings[a], "b": wordings[b]}
        words: _Words = []
        for part in template:
            if not part.slot:
                words.append((part.text, part.keyword))
                continue
            wording = wordings[part.slot]
            if (
                part.slot == "concept"
                and family.drops_preposition
                and not part.entity_follows
                and wording[-1] in self.lexicon.prepositions
            ):
                wording = wording[:-1]
            if wording and words and words[-1][0] == "a":
                words[-1] = ("an" if wording[0][0] in "aeiou" else "a", False)
            words += [(word, word not in self.lexicon.function_words) for word in wording]
            if part.text and wording:
                words[-1] = (words[-1][0] + part.text, words[-1][1])
        return words

    # ------------------------------------------------------------------------------- candidates

    def candidates(
        self,
        query: WorldText,
        exact: int,
        near: int,
        fair: int,
        lexical: int,
        strange: int,
        publish_fair: bool = True,
    ) -> list[tuple[int, int]]:
        """Titles for a query with their true grades.

        ``exact``, ``near`` and ``fair`` are the maximum number of Excellent, Good and Fair titles.
        For a word-order query, the Fair ones include a reversed twin of each Excellent one. Without
        ``publish_fair`` the other Fair ones are there already, and may be fewer.
        ``lexical`` and ``strange`` add up to the number of Bad titles: up to ``lexical`` of them
        share a keyword with the query; the others are arbitrary. Returns indices into `titles` and
        grades, without repeats, best grade first.
        """
        need, random = query.need, self.random
        chosen = dict.fromkeys(self.titles_of(need, exact))
        for alternative in self.other_details(need, near):
            chosen.update(dict.fromkeys(self._any_title_of(alternative)))
        if self.family(need).order:
            twins = self.titles_of(self.reversed(need), exact)
            chosen.update(dict.fromkeys(twins))
            fair -= len(twins)
        for alternative in self.relatives(need, max(fair, 0)):
            if publish_fair or self._titles_of_need.get(alternative):
                chosen.update(dict.fromkeys(self._any_title_of(alternative)))
        bad: dict[int, None] = {}
        for word in random.choices(query.intended, k=lexical):
            self._add_stranger(bad, self._titles_with_word.get(word, ()), need)
        for _ in range(MAX_STRANGER_DRAWS):
            if len(bad) >= lexical + strange:
                break
            self._add_stranger(bad, range(len(self.titles)), need)
        chosen.update(bad)
        graded = [(title, grade(need, self.titles[title].need)) for title in chosen]
        return sorted(graded, key=lambda pair: -pair[1])

    def _add_stranger(self, bad: dict[int, None], titles: Sequence[int], need: Need) -> None:
        """Draw one of ``titles`` and add it to ``bad`` if its topic is not that of ``need``."""
        if titles:
            title = self.random.choice(titles)
            if self.titles[title].need.topic != need.topic:
                bad[title] = None

    def _any_title_of(self, need: Need) -> list[int]:
        self.titles_of(need, 1)
        titles = self._titles_of_need[need]
        return [self.random.choice(titles)] if titles else []


def mistype(word: str, random: Random) -> str:
    """Mistype a word: swap, drop or double a letter, or hit a neighbouring key.

    The first letter stays, as it usually does in real logs.
    """
    position = random.randrange(1, len(word))
    edit = random.randrange(4)
    if edit == 0 and position + 1 < len(word) and word[position] != word[position + 1]:
        return word[:position] + word[position + 1] + word[position] + word[position + 2 :]
    if edit == 1:
        return word[:position] + word[position + 1 :]
    if edit == 2:
        return word[:position] + word[position] + word[position:]
    key = random.choice(NEIGHBOUR_KEYS.get(word[position], word[position]))
    return word[:position] + key + word[position + 1 :]


def _joined(words: _Words) -> str:
    return " ".join(word for word, _ in words)


def _keywords(words: _Words) -> tuple[str, ...]:
    return tuple(word for word, keyword in words if keyword)


def _single(need: Need) -> int:
    return cast(int, need.entity)


def _pair(need: Need) -> tuple[int, int]:
    return cast(tuple[int, int], need.entity)


def _draw_except(ranks: Weighted[int], unwanted: int, random: Random) -> int:
    drawn = unwanted
    while drawn == unwanted:
        drawn = ranks.draw(random)
    return drawn
