"""Amazon's Shopping Queries Dataset (ESCI): queries of shoppers, products, judged by raters.

Reddy et al., "Shopping Queries Dataset: A large-scale ESCI benchmark for improving product search"
(2022), https://github.com/amazon-science/esci-data.
"""

import random
from collections.abc import Iterator
from pathlib import Path

from sentemb.data.importers.clean_texts import imported_id, imported_text
from sentemb.data.importers.columns import Reading
from sentemb.data.importers.published import (
    Judgments,
    found_file,
    table,
    write_counted,
    write_part,
    write_readme,
    write_titles,
)
from sentemb.data.importers.table_rows import Rows
from sentemb.errors import SentembError, naming
from sentemb.system.bounds import MAX_SEED, brief, whole
from sentemb.system.files import path_of
from sentemb.system.paths import AnyPath
from sentemb.system.whole_folder import check_free, filling_listed

WHERE = "https://github.com/amazon-science/esci-data"
EXAMPLES = "shopping_queries_dataset_examples.parquet"
PRODUCTS = "shopping_queries_dataset_products.parquet"
# Exact, substitute, complement, irrelevant.
GRADES = {"E": 3, "S": 2, "C": 1, "I": 0}
LOCALES = ("us", "es", "jp")
_PARQUET = Reading("parquet")


def import_esci(
    source: AnyPath,
    out: AnyPath,
    *,
    locale: str = "us",
    small: bool = False,
    dev: int = 2000,
    seed: int = 0,
    force: bool = False,
) -> dict[str, int]:
    """Turn ESCI into pairs to train on and judged dev and test sets.

    Writes ``pairs.tsv``, the exact products of the training queries; ``dev/``, judged training
    queries that are not in it; ``test/``, the judged test queries; ``titles.tsv``, the titles of
    all these products; and a ``README.md``. Grades are 3 exact, 2 substitute, 1 complement,
    0 irrelevant.

    Parameters
    ----------
    source : str or path-like
        Folder with the two Parquet files of examples and of products. Reading them needs pyarrow.
    out : str or path-like
        Folder to write to.
    locale : {"us", "es", "jp"}
        Which shop, and so which language.
    small : bool
        Only the reduced version, from which easy queries are left out.
    dev : int
        Number of training queries to judge instead.
    seed : int
        Seed of their choice.
    force : bool
        Write into a folder that has files already. Either all files are written or none.

    Returns
    -------
    dict of str to int
        Counts: ``pairs``, ``dev_queries``, ``test_queries``, ``titles``.

    Raises
    ------
    SentembError
        For a file, column or label that is missing or unknown, too many dev queries, an output
        folder that is not empty.
    """
    folder, place = path_of(source), path_of(out)
    whole("dev", dev, 1, 10**6)
    whole("seed", seed, 0, MAX_SEED)
    if locale not in LOCALES:
        raise SentembError(f"there is no locale {brief(locale)}; choose from {', '.join(LOCALES)}")
    check_free(place, force)
    examples = found_file(folder, EXAMPLES, WHERE) or folder
    products = found_file(folder, PRODUCTS, WHERE) or folder
    train, test = _judgments(examples, locale, "small_version" if small else "large_version")
    if dev >= len(train.grades):
        raise SentembError(
            f"{examples}: {dev:,} dev queries of {len(train.grades):,} training queries; choose "
            "fewer"
        )
    held_out = Judgments()
    for id in random.Random(seed).sample(list(train.grades), dev):
        held_out.queries[id], held_out.grades[id] = train.queries[id], train.grades.pop(id)

    needed = {id for part in (train, held_out, test) for id in part.title_ids}
    columns = ("product_id", "product_title", "product_locale")
    titles = dict(_titles(table(products, columns, _PARQUET), locale, needed))
    counts = {}
    with filling_listed(place) as new:
        exact = train.clicks(titles, least=GRADES["E"])
        counts["pairs"] = write_counted(new / "pairs.tsv", exact)
        counts |= write_part(new, "dev", held_out, titles)
        counts |= write_part(new, "test", test, titles)
        write_titles(new, titles)
        counts["titles"] = len(titles)
        write_readme(
            new,
            f"ESCI, {locale}: a shopping query -> a product",
            f"Made by `sentemb data esci` from {WHERE}, the {'small' if small else 'large'} "
            f"version, seed {seed}",
            counts,
            "Grades are from raters: 3 exact, 2 substitute, 1 complement, 0 irrelevant.\n"
            "pairs.tsv has the exact products of the training queries.",
            "Apache License 2.0. Texts were selected and rearranged.",
        )
    return counts


def _judgments(examples: Path, locale: str, version: str) -> tuple[Judgments, Judgments]:
    """The judgments of the training queries and of the test queries."""
    parts = {"train": Judgments(), "test": Judgments()}
    columns = ("query_id", "query", "product_id", "esci_label", "split", "product_locale")
    rows = table(examples, (*columns, version), _PARQUET)
    for number, (query_id, query, product, label, split, shop, is_in) in rows:
        if shop != locale or is_in != "1":
            continue
        with naming(rows.place(number)):
            if split not in parts or label not in GRADES:
                raise SentembError(
                    f"the label {brief(label)} or the split {brief(split)} is unknown; get the "
                    f"file again from {WHERE}"
                )
            part, id = parts[split], imported_id(query_id)
            part.queries[id] = part.queries.get(id) or imported_text(query, "query")
            part.add(id, imported_id(product), GRADES[label])
    return parts["train"], parts["test"]


def _titles(rows: Rows, locale: str, needed: set[str]) -> Iterator[tuple[str, str]]:
    """Id and title of the products of a shop that are needed and have a title."""
    for number, (raw_id, raw_title, shop) in rows:
        if shop == locale:
            with naming(rows.place(number)):
                id, title = imported_id(raw_id), ""
                if id in needed:
                    title = imported_text(raw_title, "title")
            if title:
                yield id, title
