"""What Elasticsearch and OpenSearch document of mappings and bulk requests, read strictly.

A stand-in for a server: it refuses what the documentation does not allow. Sources are the
reference pages of both engines on the bulk API, dense_vector, knn_vector and k-NN spaces.
"""

import gzip
import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import numpy as np

# Keys that each type of field may have here.
FIELDS = {
    "text": {"type", "analyzer", "similarity", "copy_to"},
    "dense_vector": {"type", "dims", "index", "similarity", "index_options"},
    "knn_vector": {"type", "dimension", "method"},
    "long": {"type"},
    "double": {"type"},
    "keyword": {"type", "ignore_above"},
    "rank_features": {"type"},
}
# What a field of these types may hold.
VALUES = {"long": int, "double": int | float, "keyword": str}
ACTIONS = {"index", "create"}


def strict_json(text):
    """A JSON text without NaN, without infinities and without a key that is there twice."""

    def refuse(value):
        raise ValueError(f"{value} is not JSON")

    def pairs(items):
        keys = [key for key, _ in items]
        assert len(keys) == len(set(keys)), f"a key is there twice: {keys}"
        return dict(items)

    return json.loads(text, parse_constant=refuse, object_pairs_hook=pairs)


def check_mapping(body):
    """The length of a vector and the fields, after all checks."""
    assert set(body) <= {"settings", "mappings"} and set(body["mappings"]) == {"properties"}
    index = body.get("settings", {}).get("index", {})
    assert set(index) <= {"knn", "similarity", "analysis"}
    for own in index.get("similarity", {}).values():
        assert set(own) == {"type", "k1", "b"} and own["type"] == "BM25"
        assert own["k1"] >= 0 and 0 <= own["b"] <= 1
    analysis = index.get("analysis", {"analyzer": {}, "filter": {}})
    for own in analysis["analyzer"].values():
        assert own["type"] == "custom" and own["tokenizer"] == "standard"
        assert all(name == "lowercase" or name in analysis["filter"] for name in own["filter"])
    fields = body["mappings"]["properties"]
    of_products = fields.get("fields", {"properties": {}})
    assert set(of_products) == {"properties"}
    own = [field for name, field in fields.items() if name != "fields"]
    for field in (*own, *of_products["properties"].values()):
        assert set(field) <= FIELDS[field["type"]], field
        if field["type"] == "text":
            assert field.get("similarity", "BM25") in {"BM25", *index.get("similarity", {})}
            assert field.get("analyzer", "standard") in {"standard", *analysis["analyzer"]}
            assert field.get("copy_to", "title") in fields
    vector = fields["vector"]
    if vector["type"] == "dense_vector":
        assert vector["similarity"] == "dot_product" and vector["index"] is True
        options = vector["index_options"]
        assert options["type"] == "int8_hnsw" and set(options) == {"type", "m", "ef_construction"}
        assert 1 <= vector["dims"] <= 4096
        return vector["dims"], fields
    method = vector["method"]
    assert index["knn"] is True and method["name"] == "hnsw"
    assert (method["engine"], method["space_type"]) == ("lucene", "cosinesimil")
    assert set(method["parameters"]) == {"m", "ef_construction"}
    assert 1 <= vector["dimension"] <= 16_000
    return vector["dimension"], fields


def read_bulk(raw, mapping):
    """The documents of the body of one bulk request, by id."""
    dim, fields = check_mapping(mapping)
    assert raw.endswith(b"\n"), "the last line must end in a line end"
    lines = raw[:-1].split(b"\n")
    assert len(lines) % 2 == 0, "an action without its source"
    found = {}
    for action_line, source_line in zip(lines[::2], lines[1::2], strict=True):
        action = strict_json(action_line.decode("utf-8"))
        assert len(action) == 1 and set(action) <= ACTIONS, action
        (about,) = action.values()
        assert set(about) == {"_id"} and isinstance(about["_id"], str)
        id = about["_id"]
        assert 0 < len(id.encode()) <= 512 and id not in found
        source = strict_json(source_line.decode("utf-8"))
        assert set(source) <= set(fields), f"fields that are not in the mapping: {set(source)}"
        for name, value in source.get("fields", {}).items():
            assert isinstance(value, VALUES[fields["fields"]["properties"][name]["type"]])
        for name, value in source.items():
            if name == "fields":
                continue
            if fields[name]["type"] == "text":
                texts = value if isinstance(value, list) else [value]
                assert all(isinstance(text, str) for text in texts)
                continue
            if fields[name]["type"] == "rank_features":
                assert all("." not in feature and value[feature] > 0 for feature in value)
                continue
            numbers = np.array(value, np.float32)
            assert numbers.shape == (dim,) and np.isfinite(numbers).all()
            assert abs(float(numbers @ numbers) - 1) <= 1e-4, "not of unit length"
        found[id] = source
    return found


def read_folder(folder, part_bytes=50_000_000):
    """Mapping and documents of an exported folder; parts are checked."""
    mapping = strict_json((folder / "mapping.json").read_text(encoding="utf-8"))
    parts = sorted(folder.glob("bulk-*.ndjson.gz"))
    assert [path.name for path in parts] == [
        f"bulk-{number:05}.ndjson.gz" for number in range(1, len(parts) + 1)
    ]
    documents = {}
    for path in parts:
        raw = gzip.decompress(path.read_bytes())
        assert len(raw) <= part_bytes
        part = read_bulk(raw, mapping)
        assert not set(part) & set(documents), "an id is in two parts"
        documents |= part
    return mapping, documents


def parts_of_search(body, mapping):
    """What a request adds up, after all checks.

    Returns the vector or None, (field, text, factor) of the words, or the feature, that find
    titles, and the clauses and factors of the second pass, each with the titles that it looks at.
    """
    fields = mapping["mappings"]["properties"]
    assert set(body) <= {"size", "_source", "knn", "query", "rescore"}
    vector, words = None, []
    if "knn" in body:
        knn = body["knn"]
        assert set(knn) - {"filter"} == {"field", "query_vector", "k", "num_candidates"}
        assert knn["field"] == "vector" and fields["vector"]["type"] == "dense_vector"
        assert 1 <= knn["k"] <= knn["num_candidates"] <= 10_000
        vector = knn["query_vector"]
    assert "query" in body or vector is not None
    query = body.get("query", {"match_none": {}})
    if query != {"match_none": {}}:
        assert set(query) == {"bool"}
        if set(query["bool"]) != {"should"}:
            assert set(query["bool"]) == {"should", "filter", "minimum_should_match"}
            assert query["bool"]["minimum_should_match"] == 1
        for clause in query["bool"]["should"]:
            ((kind, about),) = clause.items()
            if kind == "knn":
                assert set(about["vector"]) - {"filter"} == {"vector", "k"} and vector is None
                assert fields["vector"]["type"] == "knn_vector"
                vector = about["vector"]["vector"]
            elif kind == "rank_feature":
                assert set(about) == {"field", "boost", "log"}
                assert about["log"] == {"scaling_factor": 1}
                field, _, feature = about["field"].rpartition(".")
                assert fields[field]["type"] == "rank_features"
                words.append((field, feature, about["boost"]))
            elif kind != "match_none":
                words.append(matched(clause, fields))
    assert all(factor > 0 for _, _, factor in words), "a boost is above 0"
    again = []
    for one in body.get("rescore", []):
        assert set(one) == {"window_size", "query"} and body["size"] <= one["window_size"] <= 10_000
        assert set(one["query"]) == {"rescore_query", "rescore_query_weight"}
        clause, factor = one["query"].values()
        again.append((clause, factor, one["window_size"]))
    if vector is not None:
        vector = np.array(vector, np.float32)
        assert abs(float(vector @ vector) - 1) <= 1e-4
    return vector, words, again


def matched(clause, fields):
    """The field, the text and the boost of a ``match`` query."""
    ((kind, about),) = clause.items()
    ((field, match),) = about.items()
    assert kind == "match" and set(match) <= {"query", "boost"} and fields[field]["type"] == "text"
    return field, match["query"], match.get("boost", 1)


class StandIn(ThreadingHTTPServer):
    """A server on the loopback address that takes an index and bulk requests.

    Attributes
    ----------
    address : str
    mappings, documents : dict
        By the name of the index.
    refused : dict
        Id -> reason; a title with such an id is answered with an error.
    """

    daemon_threads = True

    def __init__(self):
        super().__init__(("127.0.0.1", 0), _Handler)
        self.address = f"http://127.0.0.1:{self.server_port}"
        self.mappings, self.documents, self.refused, self.users = {}, {}, {}, []

    def __enter__(self):
        threading.Thread(target=self.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *error):
        self.shutdown()
        self.server_close()


class _Handler(BaseHTTPRequestHandler):
    def log_message(self, *arguments):
        pass

    def answer(self, status, body):
        raw = json.dumps(body, separators=(",", ":")).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(raw)))
        self.end_headers()
        self.wfile.write(raw)

    def body(self):
        raw = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        is_packed = self.headers.get("Content-Encoding") == "gzip"
        return gzip.decompress(raw) if is_packed else raw

    def do_PUT(self):
        name, raw = self.path.strip("/"), self.body()
        if name in self.server.mappings:
            self.answer(400, {"error": {"type": "resource_already_exists_exception"}})
            return
        assert self.headers["Content-Type"] == "application/json"
        mapping = strict_json(raw.decode())
        check_mapping(mapping)
        self.server.mappings[name], self.server.documents[name] = mapping, {}
        self.server.users.append(self.headers.get("Authorization"))
        self.answer(200, {"acknowledged": True})

    def do_POST(self):
        path, _, query = self.path.partition("?")
        name, action = path.strip("/").split("/")
        raw = self.body()
        if action == "_refresh":
            self.answer(200, {"_shards": {"failed": 0}})
            return
        if action == "_search":
            self.answer(200, self.found(name, strict_json(raw.decode())))
            return
        assert action == "_bulk" and query == "filter_path=errors,items.*.error"
        assert self.headers["Content-Type"] == "application/x-ndjson"
        found = read_bulk(raw, self.server.mappings[name])
        refused = {id: self.server.refused[id] for id in found if id in self.server.refused}
        self.server.documents[name] |= {id: found[id] for id in found if id not in refused}
        answer = {"errors": bool(refused)}
        if refused:
            answer["items"] = [{"index": {"error": {"reason": why}}} for why in refused.values()]
        self.answer(200, answer)

    def found(self, name, body):
        """The answer to a search; words count nothing. A condition is a range below a number."""
        assert not any(place in json.dumps(body) for place in ("QUERY TEXT", "QUERY VECTOR"))
        vector, _, _ = parts_of_search(body, self.server.mappings[name])
        documents = self.server.documents[name]
        if condition := body["knn"].get("filter"):
            (((column, range),),) = (condition["range"].items(),)
            column = column.removeprefix("fields.")
            documents = {
                id: source
                for id, source in documents.items()
                if source["fields"][column] < range["lt"]
            }
        scores = {
            id: (1 + float(vector @ np.array(source["vector"], np.float32))) / 2
            for id, source in documents.items()
            if "vector" in source
        }
        best = sorted(scores, key=scores.get, reverse=True)[: body["size"]]
        return {
            "hits": {
                "hits": [
                    {"_id": id, "_score": scores[id], "_source": {"title": documents[id]["title"]}}
                    for id in best
                ]
            }
        }
