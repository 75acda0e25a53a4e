"""Ways to damage bytes, texts, JSON, arrays and models, each chosen by a random generator.

A mutation takes ``(rng, ...)`` with a `random.Random` and returns what is damaged with a few words
on what was done.
"""

import io
import json
import random
import re
import struct

import numpy as np

from reliability.model_format import Raw

NUMBERS = (
    *(b"0", b"-1", b"-0", b"1.5", b"nan", b"inf", b"-inf", b"NaN", b"Infinity", b"1e400"),
    *(b"1e-400", b"1e30", b"3.5e38", b"1000000000", b"2147483648", b"4294967296"),
    *(b"9223372036854775807", b"18446744073709551616"),
    *(b"9" * 400, b"9" * 5000, b"1_000", b"0x10", b"007", b"+1"),
    "\uff11\uff12".encode(),
)  # fmt: skip
DAMAGED_UTF8 = (
    *(b"\xff", b"\xc3(", b"\xed\xa0\x80", b"\xf0\x9f\x98", b"\xef\xbb\xbf", b"\x00", b"\r"),
    *(b"\x85", "\u2028".encode()),
    *("\u202e".encode(), "e\u0301".encode(), b"\x1b[31m", b"\x7f", b"\xc0\x80"),
    *("\U0010ffff".encode(), b"\\ud800", b"\\u0000", b"\t", b"\n", b" ", b'"', b"{", b"}"),
)  # fmt: skip
DEEP = "@deep@"


def mutate_bytes(rng, data, others):
    """Damage ``data``; ``others`` (list of bytes) are files to take pieces from."""
    kind = rng.choice(_BYTES)
    done, what = kind(rng, data, others)
    if done == data:
        return _insert(rng, data, others)
    return done, what


def _flip(rng, data, others):
    changed = bytearray(data or b"\0")
    for _ in range(rng.choice((1, 1, 1, 2, 8, 64))):
        changed[rng.randrange(len(changed))] ^= 1 << rng.randrange(8)
    return bytes(changed), "bits flipped"


def _set(rng, data, others):
    changed = bytearray(data or b"\0")
    at = rng.randrange(len(changed))
    changed[at] = rng.choice((0, 255, 127, 128, 10, 9, 32, 34, 45, 48, 57, 91, 123))
    return bytes(changed), f"a byte set at {at}"


def _insert(rng, data, others):
    at = rng.randrange(len(data) + 1)
    piece = rng.choice((rng.randbytes(rng.choice((1, 2, 8, 99))), rng.choice(DAMAGED_UTF8)))
    return data[:at] + piece + data[at:], f"{piece[:9]!r} put in at {at}"


def _delete(rng, data, others):
    at = rng.randrange(len(data) + 1)
    size = rng.choice((1, 1, 2, 4, 8, 64, 512))
    return data[:at] + data[at + size :], f"{size} bytes taken out at {at}"


def _cut(rng, data, others):
    size = rng.choice((0, 1, 7, 8, 9, rng.randrange(len(data) + 1), max(0, len(data) - 1)))
    return data[:size], f"cut to {size} bytes"


def _double(rng, data, others):
    at = rng.randrange(len(data) + 1)
    size = rng.choice((1, 8, 64, 512, len(data)))
    return data[: at + size] + data[at:], f"{size} bytes doubled at {at}"


def _double_line(rng, data, others):
    lines = data.split(b"\n")
    at = rng.randrange(len(lines))
    return b"\n".join([*lines[: at + 1], *lines[at:]]), f"line {at + 1} doubled"


def _swap_lines(rng, data, others):
    lines = data.split(b"\n")
    rng.shuffle(lines)
    return b"\n".join(lines), "lines shuffled"


def _splice(rng, data, others):
    other = rng.choice(others)
    first, second = rng.randrange(len(data) + 1), rng.randrange(len(other) + 1)
    return data[:first] + other[second : second + 4096], "the end of another file"


def _whole_other(rng, data, others):
    return rng.choice(others), "another file"


def _number(rng, data, others):
    found = list(re.finditer(rb"-?\d+(\.\d+)?", data[:20_000]))
    if not found:
        return data, ""
    place, number = rng.choice(found), rng.choice(NUMBERS)
    what = f"{place[0][:9]!r} at {place.start()} became {number[:12]!r}"
    return data[: place.start()] + number + data[place.end() :], what


def _utf8(rng, data, others):
    at, piece = rng.randrange(len(data) + 1), rng.choice(DAMAGED_UTF8)
    return data[:at] + piece + data[at:], f"{piece!r} put in at {at}"


def _utf16(rng, data, others):
    return data.decode("utf-8", "replace").encode("utf-16"), "as UTF-16"


def _line_ends(rng, data, others):
    return data.replace(b"\n", rng.choice((b"\r\n", b"\r", b"\n\n", b"", b"\x0b"))), "line ends"


def _separators(rng, data, others):
    return data.replace(b"\t", rng.choice((b" ", b"\t\t", b""))), "tabs"


def _long(rng, data, others):
    at = rng.randrange(len(data) + 1)
    piece = rng.choice((b"w", b"w ", b"[", b"9", b"\xc3\xa9")) * rng.choice((300, 5000, 50_000))
    return data[:at] + piece + data[at:], f"{len(piece)} bytes {piece[:2]!r} put in at {at}"


_BYTES = (
    *(_flip, _flip, _set, _insert, _delete, _cut, _double, _double_line, _swap_lines, _splice),
    *(_whole_other, _number, _number, _number, _utf8, _utf8, _utf16, _line_ends, _separators),
    *(_long,),
)  # fmt: skip


# -- JSON -------------------------------------------------------------------------------------


def odd_value(rng):
    """A value that hardly any reader waits for."""
    return rng.choice(
        (
            *(True, False, None, 0, 1, -1, 1.5, 2**31, 2**63, -(2**63) - 1, 10**9, 10**30, 10**400),
            *(1e308, 1e-308, float("nan"), float("inf"), float("-inf"), "", " ", "x", "0", "lstm"),
            *("\ud800", "\x1b[31m", "\0", "a\nb", "x" * 5000, "../../x", [], {}, [[]], [1], ["x"]),
            *({"": 0}, {"a": {"b": []}}, DEEP, [None] * 3, [float("nan")] * 3, ["x"] * 3),
        )
    )  # fmt: skip


def mutate_json(rng, value):
    """Change one place in ``value``, which is changed itself; a new one if the root is it."""
    parents = [(None, None)]
    queue = [value]
    while queue:
        node = queue.pop()
        keys = (
            range(len(node)) if isinstance(node, list) else node if isinstance(node, dict) else ()
        )
        for key in keys:
            parents.append((node, key))
            queue.append(node[key])
    parent, key = rng.choice(parents)
    if parent is None:
        odd = odd_value(rng)
        return odd, f"all became {_short(odd)}"
    if rng.random() < 0.15:
        del parent[key]
        return value, f"without {key}"
    if isinstance(parent, dict) and rng.random() < 0.1:
        new = rng.choice(("", "x", "\ud800", "\x1b[31m", "x" * 5000, key.upper()))
        parent[new] = parent.pop(key)
        return value, f"{key} is called {_short(new)}"
    odd = odd_value(rng)
    if isinstance(parent[key], int) and rng.random() < 0.3:
        odd = parent[key] + rng.choice((-1, 1, 0.5, 10))
    parent[key] = odd
    return value, f"{key} became {_short(odd)}"


def dump(value):
    """JSON as bytes, with places as deep as no reader goes."""
    text = json.dumps(value).replace(json.dumps(DEEP), "[" * 100_000 + "]" * 100_000)
    return text.encode()


def mutate_json_lines(rng, data):
    """Change one line of a file of JSON lines."""
    lines = data.splitlines()
    at = rng.randrange(len(lines))
    value, what = mutate_json(rng, json.loads(lines[at]))
    lines[at] = dump(value)
    return b"\n".join(lines) + b"\n", f"line {at + 1}: {what}"


def _short(value):
    return ascii(value)[:30] if not isinstance(value, int) or abs(value) < 10**40 else "10^400"


# -- arrays and models ------------------------------------------------------------------------


def mutate_array(rng, array):
    """An array with other numbers, of another type or shape: an ndarray or a `Raw`."""
    kind = rng.randrange(9)
    if kind < 3 and array.size:
        changed = array.copy()
        value = rng.choice((np.nan, np.inf, -np.inf, 3e38, -3e38, 1e20, 0, -1, 1e-45))
        if rng.random() < 0.5:
            changed.flat[rng.randrange(array.size)] = _fitting(value, array.dtype)
            return changed, f"one number became {value}"
        changed[...] = _fitting(value, array.dtype)
        return changed, f"all became {value}"
    if kind == 3:
        dtype = rng.choice(("f2", "f4", "f8", "i4", "i8", "u1"))
        with np.errstate(all="ignore"):
            return array.astype(dtype), f"of type {dtype}"
    if kind == 4:
        name, size = rng.choice((("BF16", 2), ("F8_E4M3", 1), ("BOOL", 1), ("C64", 8), ("U16", 2)))
        return Raw(name, array.shape, bytes(size * array.size)), f"of type {name}"
    if kind == 5:
        shape = rng.choice(((0,), (0, 1 << 60), (1 << 32, 0), (0, 0, 0), (0,) * 40))
        return Raw("F32", shape, b""), f"of shape {shape}"[:60]
    shape = rng.choice(((-1,), array.shape[::-1], (1, *array.shape), (*array.shape, 1)))
    if kind == 6:
        return np.ascontiguousarray(array).reshape(shape), f"of shape {shape}"
    if kind == 7:
        return np.concatenate([array, array]) if array.ndim else array.reshape(1), "doubled"
    return array[:-1] if array.ndim else array.reshape(1), "one row less"


def _fitting(value, dtype):
    if dtype.kind == "f":
        return value
    return int(np.nan_to_num(np.clip(value, max(-9, np.iinfo(dtype).min), 9)))


def mutate_text(rng, data, others):
    """A vocabulary: damaged bytes, or lines that are odd."""
    if rng.random() < 0.4:
        return mutate_bytes(rng, data, others)
    lines = data.split(b"\n")
    at = rng.randrange(len(lines))
    odd = rng.choice(
        (b"", b" ", lines[0], b"caf\xe9", b"\x00", b"w" * 5000, b"\xef\xbb\xbfa", b"a\rb")
    )
    lines[at] = odd
    return b"\n".join(lines), f"line {at + 1} became {odd[:12]!r}"


def mutate_parts(rng, parts, others):
    """Change one or two things of a model, see `model_format.Parts`."""
    said = []
    for _ in range(rng.choice((1, 1, 1, 2))):
        kind = rng.randrange(10)
        if kind < 4 and isinstance(parts.config, dict):
            parts.config, what = _mutate_config(rng, parts.config)
            what = f"config: {what}"
        elif kind < 7 and parts.tensors:
            what = _mutate_tensors(rng, parts.tensors)
        else:
            field = rng.choice(("vocabulary", "words", "history"))
            data = getattr(parts, field)
            if field == "history" and rng.random() < 0.7:
                data, what = mutate_json_lines(rng, _json_lines_or(data))
            else:
                data, what = mutate_text(rng, data, others)
            setattr(parts, field, data)
            what = f"{field}: {what}"
        said.append(what)
    return "; ".join(said)


def _json_lines_or(data):
    """``data``, or a line if there is none left or it is no JSON any longer."""
    try:
        for line in data.splitlines():
            json.loads(line)
        return data if data.strip() else b"{}\n"
    except (ValueError, RecursionError):
        return b"{}\n"


def _mutate_config(rng, config):
    if rng.random() < 0.85:
        key = rng.choice([key for key in config if key != "training"])
        odd = odd_value(rng)
        if isinstance(config[key], int) and rng.random() < 0.3:
            odd = rng.choice((float(config[key]), bool(config[key]), str(config[key])))
        config[key] = odd
        what = f"{key} became {_short(odd)}"
        if rng.random() < 0.1:
            del config[key]
            what = f"without {key}"
    else:
        config, what = mutate_json(rng, config)
    if not isinstance(config, dict) or DEEP in json.dumps(config):
        return dump(config), what
    return config, what


def _mutate_tensors(rng, tensors):
    name = rng.choice(sorted(tensors))
    kind = rng.random()
    if kind < 0.1:
        del tensors[name]
        return f"without {name}"
    if kind < 0.2:
        new = rng.choice(("x", "", "\x1b[31m", "n" * 5000, "__metadata__x", name.upper()))
        tensors[new] = tensors.pop(name)
        return f"{name} is called {_short(new)}"
    if kind < 0.25:
        tensors[rng.choice(("x", "query.x", "a\nb"))] = np.zeros(2, np.float32)
        return "a tensor too many"
    if isinstance(tensors[name], Raw):
        return f"{name} as it was"
    tensors[name], what = mutate_array(rng, tensors[name])
    return f"{name} {what}"


def mutate_safetensors(rng, data, others):
    """Change the header of a safetensors file; its checksum is not repaired."""
    (length,) = struct.unpack("<Q", data[:8])
    header, rest = data[8 : 8 + length], data[8 + length :]
    if rng.random() < 0.2:
        length = rng.choice((0, 1, length - 1, length + 1, 10**6, 10**8 + 1, 2**63, 2**64 - 1))
        return struct.pack("<Q", length) + header + rest, f"a header of {length} bytes"
    value, what = mutate_json(rng, json.loads(header))
    header = dump(value)
    return struct.pack("<Q", len(header)) + header + rest, f"header: {what}"


_NPY_HEADERS = [
    *((rb"'<f4'", kind) for kind in (b"'|O'", b"'<f8'", b"'<U9'", b"'V4'", b"'>f4'", b"'<M8[s]'")),
    *((rb"\(\d+", start) for start in (b"(1000000000000", b"(-1", b"(" * 300, b"(0, 3")),
    *((rb"\(.*\)", shape) for shape in (b"()", b"(1e9,)", b"[1]", b"(0, 3)", b"(3, 0)")),
    *((rb"False", b"True"), (rb"\d+", b"9" * 400), (rb"'shape'", b"'form'"), (rb"\{", b"[")),
]


def mutate_npy(rng, data):
    """Change the header of an .npy file."""
    if rng.random() < 0.4:
        array = np.load(io.BytesIO(data))
        changed, what = mutate_array(rng, array)
        if not isinstance(changed, Raw):
            return npy(changed), what
    (length,) = struct.unpack("<H", data[8:10])
    header, rest = data[10 : 10 + length], data[10 + length :]
    old, new = rng.choice(_NPY_HEADERS)
    header = re.sub(old, new.replace(b"\\", rb"\\"), header, count=1)
    return data[:8] + struct.pack("<H", len(header)) + header + rest, f"header: {new[:20]!r}"


def mutate_npz(rng, data):
    """Change one array of an .npz file, the archive being whole."""
    arrays = dict(np.load(io.BytesIO(data)))
    name = rng.choice(sorted(arrays))
    if rng.random() < 0.15:
        del arrays[name]
        what = "missing"
    else:
        changed, what = mutate_array(rng, arrays[name])
        if isinstance(changed, Raw):
            changed, what = np.array([None, "x"], dtype=object), "of objects"
        arrays[name] = changed
    file = io.BytesIO()
    np.savez(file, **arrays)
    return file.getvalue(), f"{name} {what}"


def npy(array):
    file = io.BytesIO()
    np.save(file, array)
    return file.getvalue()


def generator(seed, number):
    """The generator of one case."""
    return random.Random(f"{seed}:{number}")
