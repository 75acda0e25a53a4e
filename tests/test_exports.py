"""Made-up exports in the shapes that shops, search engines and data sets have.

`sentemb start` reads each, or names in one line what it is and what to do.
"""

import json

import pytest
from click.testing import CliRunner

from sentemb.cli import main
from sentemb.cli import start as start_command

LOG = ["lamp\tRed Lamp\t1200", "mug\tBlue Mug\t3"]
CLICKS = "search_term,sku,clicks\nlamp,{},1200\nmug,{},3\n"


def lines(*records):
    return "".join(f"{json.dumps(record)}\n" for record in records)


def imported(tmp_path, monkeypatch, tables):
    """The log that `start` imports from tables, given by name and text; or its error."""

    def only_import(clicks, folder, columns, *_):
        start_command._run(
            "import", clicks, "-o", folder / "pairs.tsv", *columns,
            "--write-catalogue", folder / "titles.tsv", "--skip-bad-lines",
        )  # fmt: skip

    monkeypatch.setattr(start_command, "_make", only_import)
    for name, text in tables.items():
        data = text if isinstance(text, bytes) else text.encode()
        (tmp_path / name).write_bytes(data)
    paths = [str(tmp_path / name) for name in tables]
    done = CliRunner().invoke(main, ["start", *paths, "-o", str(tmp_path / "shop")])
    if done.exit_code:
        assert not (tmp_path / "shop").exists()
        return done.stderr
    lines = (tmp_path / "shop/pairs.tsv").read_text("utf-8").splitlines()
    return "".join("\t".join(line.split("\t")[:3]) + "\n" for line in lines)  # without the ids


SHOPIFY = """\
Handle,Title,Vendor,Type,Tags,Option1 Name,Option1 Value,Variant SKU,Variant Price,Image Src
red-lamp,Red Lamp,Acme,Lamps,"home, light",Size,S,L-S,19.90,https://x.example/1.jpg
red-lamp,,,,,,M,L-M,29.90,
red-lamp,,,,,,,,,https://x.example/1b.jpg
blue-mug,Blue Mug,Acme,Mugs,home,Size,S,M-S,9.90,https://x.example/2.jpg
blue-mug,,,,,,L,M-L,9.90,
"""
WOOCOMMERCE = """\
ID,Type,SKU,"GTIN, UPC, EAN, or ISBN",Name,"In stock?",Stock,"Regular price",Categories,Images
11,simple,L,4006381333931,Red Lamp,1,5,19.90,"Home, Light",https://x.example/1.jpg
12,simple,M,,Blue Mug,0,,9.90,Home,https://x.example/2.jpg
"""
MAGENTO = """\
sku,store_view_code,attribute_set_code,product_type,categories,name,description,price,url_key,qty
L,,Default,simple,Default/Home,Red Lamp,A lamp,19.9000,red-lamp,5.0000
L,de,,,,,Eine Lampe,,,
M,,Default,simple,Default/Home,Blue Mug,,9.9000,blue-mug,0.0000
"""
MERCHANT = """\
id\ttitle\tlink\timage_link\tavailability\tprice\tbrand\tgtin
L\tRed Lamp\thttps://x.example/l\thttp://x.example/l\tin_stock\t19.90 EUR\tAcme\t4006381333931
M\tBlue Mug\thttps://x.example/m\thttp://x.example/m\tout_of_stock\t9.90 EUR\tAcme\t
"""
RECORDS = (
    {"objectID": "L", "name": "Red Lamp", "price": 19.9, "categories": ["Home", "Light"]},
    {"objectID": "M", "name": "Blue Mug", "price": 9, "categories": [], "stock": {"shop": 3}},
)
DOCUMENTS = (
    {"id": "L", "title": "Red Lamp", "price": 19.9, "tags": ["home"], "variants": [{"size": 1}]},
    {"id": "M", "title": "Blue Mug", "price": 9, "tags": [], "variants": []},
)
BY_SKU = CLICKS.format("L", "M")

READ = {
    "Search Console, queries with pages": {
        "c.csv": "Query,Page,Clicks,Impressions,CTR,Position\n"
        'lamp,Red Lamp,"1,200",9000,13%,1.2\nmug,Blue Mug,3,90,3.3%,4.5\n'
    },
    "GA4, with comments and a grand total": {
        "c.csv": "# ----------\n# Site search\n# Property: Example, Inc.\n#\n\n"
        "Search term,Item ID,Item name,Event count,Total users\n"
        ",,,1203,130,Grand total\nlamp,0001,Red Lamp,1200,90\nmug,0002,Blue Mug,3,30\n"
    },
    "GA4, items of events in BigQuery": {
        "c.jsonl": lines(
            {"event_name": "select_item", "search_term": "lamp", "event_count": 1200,
             "items": [{"item_id": "L", "item_name": "Red Lamp"}]},
            {"event_name": "view_item_list", "search_term": "lamp", "event_count": 9,
             "items": [{"item_id": "M", "item_name": "Blue Mug"}]},
            {"event_name": "select_item", "search_term": "mug", "event_count": 3,
             "items": [{"item_id": "M", "item_name": "Blue Mug"}]},
        )
    },
    "GA4, with a total in its first row": {
        "c.csv": "# Start date: 20260101\nSearch term,Item name,Event count\n"
        ",,1203\nlamp,Red Lamp,1200\nmug,Blue Mug,3\n(not set),(not set),0\n"
    },
    "Google Ads, with landing pages, in UTF-16 with tabs": {
        "c.csv": (
            "Search terms report\n\"January 1, 2026 - January 31, 2026\"\n"
            "Search term\tMatch type\tCampaign\tLanding page\tImpr.\tCTR\tClicks\n"
            'lamp\tExact\tHome\tRed Lamp\t9,000\t13%\t"1,200"\n'
            "mug\tExact\tHome\tBlue Mug\t90\t3%\t3\n"
            'Total: Search terms\t --\t --\t --\t9,090\t --\t"1,203"\n'
        ).encode("utf-16")
    },
    "Algolia, clicked ids of enriched events": {
        "c.ndjson": lines(
            {"query": "lamp", "objectIDs": ["L"], "positions": [1], "clicks": 1200},
            {"query": "mug", "objectIDs": ["M"], "positions": [2], "clicks": 3},
        ),
        "records.json": json.dumps(RECORDS, indent=2),
    },
    "Typesense, click events": {
        "c.jsonl": lines(
            {"type": "click", "data": {"q": "lamp", "doc_id": "L"}, "n": 1200},
            {"type": "click", "data": {"q": "mug", "doc_id": "M"}, "n": 3},
        ),
        "documents.jsonl": lines(*DOCUMENTS),
    },
    "Meilisearch, documents as a list": {"c.csv": BY_SKU, "d.json": json.dumps(DOCUMENTS)},
    "Shopify, clicks by SKU": {
        "c.csv": "Search query,SKU,Total clicks\nlamp,L-M,1200\nmug,M-L,3\n", "p.csv": SHOPIFY
    },
    "Shopify, clicks by handle": {
        "c.csv": "search_query,product,clicks\nlamp,red-lamp,1200\nmug,blue-mug,3\n",
        "p.csv": SHOPIFY,
    },
    "Search Console in German": {
        "c.csv": "\ufeffHäufigste Suchanfragen;Seite;Klicks;Impressionen;CTR;Position\n"
        "lamp;Red Lamp;1.200;9.000;13 %;1,2\nmug;Blue Mug;3;90;3,3 %;4,5\n"
    },
    "Amazon, search catalogue performance": {
        "c.csv": 'Brand=["Acme"]\n"ASIN Title","ASIN","Search Query","Clicks: Total Count"\n'
        '"Red Lamp","B01","lamp","1,200"\n"Blue Mug","B02","mug","3"\n'
    },
    "Bing, with a line of copyright": {
        "c.csv": '"Search term report"\n\n"SearchQuery","FinalURL","Clicks"\n'
        '"lamp","Red Lamp","1,200"\n"mug","Blue Mug","3"\n"©2026 Example. All rights reserved."\n'
    },
    "Segment, events": {
        "c.jsonl": lines(
            {"event": "Product Clicked", "properties": {"query": "lamp", "sku": "L"}, "n": 1200},
            {"event": "Product Clicked", "properties": {"query": "mug", "sku": "M"}, "n": 3},
        ),
        "p.csv": "sku,name\nL,Red Lamp\nM,Blue Mug\n",
    },
    "Search Console in French": {
        "c.csv": "Requêtes les plus fréquentes,Page,Clics,Impressions\n"
        "lamp,Red Lamp,1200,9000\nmug,Blue Mug,3,90\n"
    },
    "WooCommerce, clicks by SKU": {"c.csv": BY_SKU, "p.csv": WOOCOMMERCE},
    "WooCommerce, clicks by id": {
        "c.csv": "term;product_id;clicks\nlamp;11;1.200\nmug;12;3\n", "p.csv": WOOCOMMERCE
    },
    "Magento": {"c.csv": BY_SKU, "p.csv": MAGENTO},
    "Merchant Center, TSV": {"c.csv": BY_SKU, "p.tsv": MERCHANT},
    "BEIR, a corpus with titles": {
        "c.csv": BY_SKU,
        "corpus.jsonl": lines(
            {"_id": "L", "title": "Red Lamp", "text": "A lamp.", "metadata": {}},
            {"_id": "M", "title": "Blue Mug", "text": "A mug.", "metadata": {}},
        ),
    },
    "BEIR, a corpus without titles": {
        "c.csv": BY_SKU,
        "corpus.jsonl": lines(
            {"_id": "L", "title": "", "text": "Red Lamp", "metadata": {}},
            {"_id": "M", "title": "", "text": "Blue Mug", "metadata": {}},
        ),
    },
    "ids in two locales": {
        "c.csv": "query,product_id,product_locale,clicks\nlamp,L,us,1200\nmug,M,us,3\n",
        "p.csv": "product_id,product_title,product_locale\nL,Rote Lampe,de\nL,Red Lamp,us\n"
        "M,Blaue Tasse,de\nM,Blue Mug,us\n",
    },
    "Matomo, dates before the header": {
        "c.csv": "Report: Site search;;\nDate range: 2026-01-01 – 2026-01-31\n\n"
        "Suchbegriff;Produktname;Klicks\nlamp;Red Lamp;1.200\nmug;Blue Mug;3\nSumme;;1.203\n"
    },
}  # fmt: skip


@pytest.mark.parametrize("name", READ)
def test_an_export_is_read(tmp_path, monkeypatch, name):
    assert imported(tmp_path, monkeypatch, READ[name]).splitlines() == LOG


def test_esci_is_read_with_ids_of_two_columns(tmp_path, monkeypatch):
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow.parquet import write_table

    tables = {
        "examples.parquet": {
            "example_id": [0, 1, 2], "query": ["lamp", "mug", "lamp"], "query_id": [7, 8, 7],
            "product_id": ["L", "M", "L"], "product_locale": ["us", "us", "de"],
            "esci_label": ["E", "S", "E"],
        },
        "products.parquet": {
            "product_id": ["L", "M", "L"], "product_title": ["Red Lamp", "Blue Mug", "Rote Lampe"],
            "product_brand": ["Acme", None, None], "product_locale": ["us", "us", "de"],
        },
    }  # fmt: skip
    texts = {}
    for name, columns in tables.items():
        write_table(pyarrow.table(columns), tmp_path / name)
        texts[name] = (tmp_path / name).read_bytes()
    log = imported(tmp_path, monkeypatch, texts)
    # An exact match is a click, a substitute is none.
    assert log == "lamp\tRed Lamp\t1\nlamp\tRote Lampe\t1\n"
    titles = (tmp_path / "shop/titles.tsv").read_text().splitlines()
    assert titles[:2] == ["id\ttitle\tbrand", "L_us\tRed Lamp\tAcme"]


NAMED = {
    "Search Console, queries alone": (
        {"c.csv": "Top queries,Clicks,Impressions,CTR,Position\nlamp,9,90,10%,1\n"},
        "no column looks like the product or page that was clicked, as in a report of searches",
    ),
    "Google Ads, search terms alone": (
        {"c.csv": "Search terms report\nAll time\nSearch term,Campaign,Clicks\nlamp,Home,9\n"},
        "as in a report of searches alone; there are Search",
    ),
    "Shopify, searches alone": (
        {"c.csv": "Search query,Searches\nlamp,9\n"},
        "as in a report of searches alone; there are Search",
    ),
    "Brand Analytics": (
        {
            "c.csv": '"Department=[""shop""]","Viewing=[""Weekly""]"\n'
            '"Search Frequency Rank","Search Term","Top Clicked Product #1: ASIN",'
            '"Top Clicked Product #1: Product Title","Top Clicked Product #1: Click Share"\n'
            '1,lamp,B01,Red Lamp,"12,3"\n'
        },
        "its own columns, such as --title-column 'Top Clicked Product #1: Product Title'",
    ),
    "Algolia, the answer of the analytics API": (
        {"c.json": json.dumps({"searches": [{"search": "lamp", "count": 9}]})},
        "c.json: is one object of JSON with its rows in searches",
    ),
    "Algolia, events without queries": (
        {"c.jsonl": lines({"eventType": "click", "queryID": "q1", "objectIDs": ["L"]})},
        "these are clicks without the texts of their queries: join them with the searches by que",
    ),
    "Meilisearch, the answer of a search": (
        {"c.json": json.dumps({"hits": [{"id": 1, "title": "a"}], "query": "lamp"}, indent=1)},
        "c.json: is one object of JSON with its rows in hits",
    ),
    "an Excel workbook": (None, "is an Excel workbook (xlsx); save the sheet as CSV UTF-8"),
    "Merchant Center, XML": (
        {"c.csv": BY_SKU, "p.xml": '<?xml version="1.0"?>\n<rss><channel><item/></channel></rss>'},
        "p.xml: is an XML feed; export the products as TSV or CSV",
    ),
    "BEIR, judgments": (
        {"train.tsv": "query-id\tcorpus-id\tscore\nq1\td1\t1\n"},
        "these are judgments in the format of BEIR: use `sentemb data beir FOLDER`",
    ),
    "MS MARCO, judgments": (
        {"qrels.train.tsv": "1185869\t0\t0\t1\n1185868\t0\t16\t1\n"},
        "these look like judgments of TREC, ids without texts",
    ),
    "Search Console, rows of the API": (
        {"c.jsonl": lines({"keys": ["lamp", "https://x.example"], "clicks": 5, "ctr": 0.1})},
        "with query and page in keys: use jq -c '.rows[] | {query: .keys[0]",
    ),
    "GA4, raw events": (
        {"c.jsonl": lines(*[{"event_name": "select_item", "event_params": [{"key": "a"}]}] * 2)},
        "raw events of GA4, with their texts in lists of keys: select search_term",
    ),
    "MS MARCO, texts": (
        {"collection.tsv": "0\tThe sky is blue.\n1\tA tap drips.\n"},
        "the first line is an id and a text, as in MS MARCO, and no names of columns",
    ),
    "MS MARCO, triples": (
        {"triples.tsv": "1\t2\t3\n4\t5\t6\n"},
        "triples of MS MARCO, ids without",
    ),
    "TREC, judgments": ({"qrels": "301 0 FR1 1\n301 0 FR2 0\n"}, "judgments of TREC, ids without"),
    "TREC, a run": (
        {"run": "301 Q0 FR1 1 9.5 x\n"},
        "a run of TREC: `sentemb evaluate RUN JUDGED`",
    ),
    "ORCAS, which has no header": (
        {"orcas.tsv": "1\tblue sky\tD1\thttp://a.example\n2\ttap\tD2\thttp://b.example\n"},
        "clicks of ORCAS, without a header: use `sentemb import --no-header --query-column 2",
    ),
    "a report of products under a name of its own": (
        {"c.csv": "Search Term;Thing clicked;No of Clicks\nlamp;Red Lamp;9\n"},
        "there are Search Term, Thing clicked, No of Clicks: name it with --title-column or --id",
    ),
    "a sign between columns that is not known": (
        {"c.csv": "query^title\nlamp^Red Lamp\n"},
        "there are query^title: if a sign separates columns there, give it with --delimiter",
    ),
    "names in another encoding": (
        {"c.csv": "検索キーワード,商品名\nランプ,赤いランプ\n".encode("cp932")},
        "the names of the columns are in another encoding; name it, such as --encoding",
    ),
    "columns without names": (
        {"c.tsv": "1\tblue sky\tD1\n2\ttap\tD2\n"},
        "if these are not names, `sentemb import` takes numbers and --no-header",
    ),
    "BEIR, queries and documents": (
        {
            "queries.jsonl": lines({"_id": "q1", "text": "lamp", "metadata": {}}),
            "corpus.jsonl": lines({"_id": "L", "title": "Red Lamp", "text": "A lamp."}),
        },
        "queries.jsonl: these are texts in the format of BEIR: use `sentemb data beir FOLDER`",
    ),
}


def test_import_names_an_export_that_begins_with_another_line(tmp_path):
    tables, message = NAMED["Brand Analytics"]
    (tmp_path / "c.csv").write_text(tables["c.csv"])
    done = CliRunner().invoke(
        main, ["import", str(tmp_path / "c.csv"), "-o", str(tmp_path / "log")]
    )
    assert done.exit_code == 1 and message in done.stderr


@pytest.mark.parametrize("name", NAMED)
def test_what_is_no_table_of_clicks_is_named(tmp_path, monkeypatch, name):
    tables, message = NAMED[name]
    if tables is None:
        import io
        import zipfile

        packed = io.BytesIO()
        with zipfile.ZipFile(packed, "w") as archive:
            archive.writestr("xl/workbook.xml", "<workbook/>")
        tables = {"c.xlsx": packed.getvalue()}
    said = imported(tmp_path, monkeypatch, tables)
    assert message in said and said.count("\n") == 1
