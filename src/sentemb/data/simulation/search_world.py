"""The simulator's world: needs, the queries and titles that word them, and what answers what.

A need (`Need`) is a point of the lexicon: a family, a concept, an entity and a detail. `World`
draws needs by popularity, words them as queries and as titles, and knows the true grade of every
title for every need, because it knows which need each text came from.
"""

from collections import Counter
from dataclasses import dataclass
from typing import NamedTuple

from sentemb.data.simulation.lexicon import TOPIC_EXPONENT, Weighted, load_lexicon

BAD, FAIR, GOOD, EXCELLENT = range(4)
MAX_QUERY_WORDS = 10
MIN_TITLE_WORDS, MAX_TITLE_WORDS = 5, 13
SHORTEST_MISSPELT_WORD = 4
# Enough to find titles of other topics as soon as there are some.
MAX_STRANGER_DRAWS = 20
# How many titles end in "- tips and guide" or the like without being too short otherwise.
TAIL_SHARE = 0.15
MAX_WORDS_WITH_TAIL = 11
# How many titles are in lower case, and in sentence case; the others are in headline case.
LOWER_CASE_SHARE, SENTENCE_CASE_SHARE = 0.08, 0.12
# How often a searcher words a meaning as titles do.
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
    """What a searcher wants or a page offers; indices into the lexicon.

    ``entity`` is an index, or an ordered pair of indices in a word-order family.
    """

    topic: int
    family: int
    concept: int
    entity: int | tuple
    detail: int


@dataclass(frozen=True, slots=True)
class Text:
    """A query or a title, the need it words and its keywords as they stand in it.

    ``intended`` are the keywords before a misspelling, in lower case.
    """

    text: str
    need: Need
    keywords: tuple
    intended: tuple
    misspelt: bool = False


def grade(wanted, offered):
    """The true grade, `BAD` to `EXCELLENT`, of a page's need for a searcher's need.

    Excellent: the same need. Good: the same concept and entity (in the same order) with another
    detail, or with one too many or too few. Fair: the same topic. Bad: another topic.
    """
    if wanted.topic != offered.topic:
        return BAD
    if wanted[:4] != offered[:4]:
        return FAIR
    return EXCELLENT if wanted.detail == offered.detail else GOOD


class World:
    """Everything that has been asked and published so far; grows as it is drawn from.

    Parameters
    ----------
    random : random.Random
        The only source of randomness.
    """

    def __init__(self, random):
        self.random = random
        self.lexicon = load_lexicon()
        self.queries = {}
        self.titles = []
        self._titles_of_need = {}
        self._title_texts = set()
        self._titles_with_word = {}
        self._families = self._families_by_sort()

    # ------------------------------------------------------------------------------------ needs

    def _families_by_sort(self):
        """For each sort of query the (topic, family) indices by popularity of the topic."""
        sorts = {"informational": [], "navigational": [], "transactional": [], "order": []}
        for number, topic in enumerate(self.lexicon.topics):
            for index, family in enumerate(topic.families):
                sorts["order" if family.order else family.kind].append((number, index))
        weighted = {}
        for sort, places in sorts.items():
            # The families of a topic share its popularity; topics count by their rank in the sort.
            sizes = Counter(topic for topic, _ in places)
            ranks = {topic: rank for rank, topic in enumerate(sizes, 1)}
            weights = [ranks[topic] ** -TOPIC_EXPONENT / sizes[topic] for topic, _ in places]
            weighted[sort] = Weighted.weighted(places, weights)
        return weighted

    def family(self, need):
        return self.lexicon.topics[need.topic].families[need.family]

    def draw_need(self, sort):
        """Draw a need of the sort informational, navigational, transactional or order."""
        topic, index = self._families[sort].draw(self.random)
        family = self.lexicon.topics[topic].families[index]
        entity = family.entity_ranks.draw(self.random)
        if family.order:
            entity = (entity, _other(family.entity_ranks, entity, self.random))
        concept = family.concept_ranks.draw(self.random)
        return Need(topic, index, concept, entity, family.detail_ranks.draw(self.random))

    def other_details(self, need, count):
        """Up to ``count`` needs that differ from ``need`` in the detail only: Good."""
        rest = [one for one in range(len(self.family(need).details)) if one != need.detail]
        chosen = self.random.sample(rest, min(count, len(rest)))
        # The plain page answers nearly every detailed need and is what engines show first.
        if need.detail and 0 not in chosen and chosen:
            chosen[0] = 0
        return [need._replace(detail=detail) for detail in chosen]

    def relatives(self, need, count):
        """``count`` needs of the same topic that ``need`` is easily confused with: Fair.

        They share its concept or its entity, and so most of its words.
        """
        family, random = self.family(need), self.random
        related = []
        for number in range(count):
            concept, entity = need.concept, need.entity
            if family.order and number % 2:
                entity = self._half_other_pair(entity, family)
            elif number % 2 and len(family.entities) > 1:
                entity = _other(family.entity_ranks, entity, random)
            elif len(family.concepts) > 1:
                concept = _other(family.concept_ranks, concept, random)
            else:
                entity = self._half_other_pair(entity, family)
            detail = need.detail if random.random() < 0.5 else family.detail_ranks.draw(random)
            related.append(need._replace(concept=concept, entity=entity, detail=detail))
        return related

    def _half_other_pair(self, pair, family):
        """A pair that shares one end with ``pair``."""
        other = pair[0]
        while other in pair:
            other = family.entity_ranks.draw(self.random)
        return (pair[0], other) if self.random.random() < 0.5 else (other, pair[1])

    @staticmethod
    def reversed(need):
        """The need with its two entities swapped."""
        return need._replace(entity=need.entity[::-1])

    # ---------------------------------------------------------------------------------- queries

    def draw_query(self, sort, misspelt):
        """A query (`Text`) of the sort, misspelt or not; the same text is the same object.

        Returns None when the draw leads nowhere: a text that already words another need, that is
        too long, or that has no word to misspell.
        """
        need = self.draw_need(sort)
        family = self.family(need)
        template = family.query_templates[need.detail].draw(self.random)
        words = self._fill(template, family, self._choose_wordings(need, "query"), need)
        if len(words) > MAX_QUERY_WORDS:
            return None
        if misspelt:
            words, intended = self._misspell(words)
            if words is None:
                return None
        else:
            intended = tuple(word for word, keyword in words if keyword)
        text = " ".join(word for word, _ in words)
        keywords = tuple(word for word, keyword in words if keyword)
        query = Text(text, need, keywords, intended, misspelt)
        known = self.queries.setdefault(text, query)
        return known if known == query else None

    def _misspell(self, words):
        """Mistype one keyword; returns the words and what the keywords were meant to be."""
        intended = tuple(word for word, keyword in words if keyword)
        places = [
            place
            for place, (word, keyword) in enumerate(words)
            if keyword and len(word) >= SHORTEST_MISSPELT_WORD and word.isalpha()
        ]
        if not places:
            return None, intended
        place = self.random.choice(places)
        wrong = mistype(words[place][0], self.random)
        if wrong in self.lexicon.words or wrong in self.lexicon.function_words:
            return None, intended
        return words[:place] + [(wrong, True)] + words[place + 1 :], intended

    # ----------------------------------------------------------------------------------- titles

    def titles_of(self, need, count):
        """Indices into `titles` of ``count`` pages about exactly ``need``, published on demand.

        Fewer when the lexicon has no more ways to word them.
        """
        titles = self._titles_of_need.setdefault(need, [])
        if len(titles) < count:
            self._publish(need, count)
        return titles[:count]

    def _publish(self, need, count):
        """Write titles until ``need`` has ``count``; in word-order families also for its reverse.

        The reverse gets the same titles with the entities swapped, so that every title has a twin
        of the same words and only their order tells the two apart.
        """
        twins = (need, self.reversed(need)) if self.family(need).order else (need,)
        for _ in range(3 * count):
            if len(self._titles_of_need[need]) == count:
                break
            written = self._write_titles(twins)
            texts = {one.text.lower() for one in written}
            too_long = len(written[0].text.split()) > MAX_TITLE_WORDS
            if not too_long and len(texts) == len(twins) and not texts & self._title_texts:
                self._title_texts |= texts
                for one in written:
                    self._add_title(one)

    def _write_titles(self, needs):
        """One title for each of ``needs``, of the same template, wordings and letter case."""
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
            intended = tuple(word for word, keyword in words if keyword)
            words = self._capitalise(words, style)
            keywords = tuple(word for word, keyword in words if keyword)
            texts.append(Text(" ".join(word for word, _ in words), need, keywords, intended))
        return texts

    def _add_title(self, title):
        index = len(self.titles)
        self.titles.append(title)
        self._titles_of_need.setdefault(title.need, []).append(index)
        for word in dict.fromkeys(title.intended):
            self._titles_with_word.setdefault(word, []).append(index)

    def _capitalise(self, words, style):
        """Mostly headline case, some sentence case, some lower case."""
        if style < LOWER_CASE_SHARE:
            return words
        headline = style > LOWER_CASE_SHARE + SENTENCE_CASE_SHARE
        small, acronyms = self.lexicon.small_title_words, self.lexicon.acronyms
        shown = []
        for place, (word, keyword) in enumerate(words):
            if word.rstrip(":") in acronyms:
                word = word.upper()
            elif place == 0 or (headline and word not in small):
                word = word[0].upper() + word[1:]
            shown.append((word, keyword))
        return shown

    # -------------------------------------------------------------------------- words of a text

    def _choose_wordings(self, need, side):
        """For each slot a wording; the two entities of a pair are keyed by their index."""
        family = self.family(need)
        meanings = {
            "concept": family.concepts[need.concept],
            "detail": family.details[need.detail],
            "field": family.field,
        }
        pair = need.entity if family.order else ()
        if not family.order:
            meanings["entity"] = family.entities[need.entity]
        meanings.update((entity, family.entities[entity]) for entity in pair)
        chosen = {}
        for slot, meaning in meanings.items():
            options = meaning.title
            if side == "query" and self.random.random() > TITLE_WORDING_SHARE:
                options = meaning.query
            weights = WORDING_WEIGHTS[: len(options)]
            chosen[slot] = (
                options[0] if len(options) == 1 else self.random.choices(options, weights)[0]
            )
        return chosen

    def _fill(self, template, family, wordings, need):
        """The words of a text as a list of (word, whether it is a keyword)."""
        if family.order:
            wordings = {**wordings, "a": wordings[need.entity[0]], "b": wordings[need.entity[1]]}
        words = []
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

    def candidates(self, query, exact, near, fair, lexical, strange):
        """Titles for a query with their true grades.

        Parameters
        ----------
        query : Text
        exact, near, fair : int
            At most how many Excellent, Good and Fair ones. A word-order query has as many
            reversed titles among the Fair ones as it has Excellent ones.
        lexical, strange : int
            How many Bad ones: as many of the first as are found share a keyword with the query,
            the others are any.

        Returns
        -------
        list of (int, int)
            Index into `titles` and grade, without repeats, best grade first.
        """
        need, random = query.need, self.random
        chosen = dict.fromkeys(self.titles_of(need, exact))
        for other in self.other_details(need, near):
            chosen.update(dict.fromkeys(self._any_title_of(other)))
        if self.family(need).order:
            twins = self.titles_of(self.reversed(need), exact)
            chosen.update(dict.fromkeys(twins))
            fair -= len(twins)
        for other in self.relatives(need, max(fair, 0)):
            chosen.update(dict.fromkeys(self._any_title_of(other)))
        bad = {}
        for word in random.choices(query.intended, k=lexical):
            self._add_stranger(bad, self._titles_with_word.get(word, ()), need)
        for _ in range(MAX_STRANGER_DRAWS):
            if len(bad) >= lexical + strange:
                break
            self._add_stranger(bad, range(len(self.titles)), need)
        chosen.update(bad)
        graded = [(title, grade(need, self.titles[title].need)) for title in chosen]
        return sorted(graded, key=lambda pair: -pair[1])

    def _add_stranger(self, bad, titles, need):
        """Add one of ``titles`` to the dict ``bad`` if it is of another topic than ``need``."""
        if titles:
            title = self.random.choice(titles)
            if self.titles[title].need.topic != need.topic:
                bad[title] = None

    def _any_title_of(self, need):
        self.titles_of(need, 1)
        titles = self._titles_of_need[need]
        return [self.random.choice(titles)] if titles else []


def mistype(word, random):
    """Misspell a word of letters as fingers do: swap, drop, double or hit a neighbouring key.

    The first letter stays, as it mostly does in real logs.
    """
    place = random.randrange(1, len(word))
    edit = random.randrange(4)
    if edit == 0 and place + 1 < len(word) and word[place] != word[place + 1]:
        return word[:place] + word[place + 1] + word[place] + word[place + 2 :]
    if edit == 1:
        return word[:place] + word[place + 1 :]
    if edit == 2:
        return word[:place] + word[place] + word[place:]
    key = random.choice(NEIGHBOUR_KEYS.get(word[place], word[place]))
    return word[:place] + key + word[place + 1 :]


def _other(ranks, unwanted, random):
    """Draw an index other than ``unwanted``."""
    drawn = unwanted
    while drawn == unwanted:
        drawn = ranks.draw(random)
    return drawn
