"""Replies of every command in RESP2 and RESP3, compared with what RedisBloom gives (REDIS.md).

    replies.py PORT ENGINE

A row is a command and its reply. A boolean is 1 or 0 in RESP2, a dict is a flat list there; `Only(two, three)` is for
what differs in another way. Redis 6.2 has no booleans and maps for modules: it answers as in RESP2, but for doubles.
"""

import pathlib
import sys

import redis


class Only:
    def __init__(self, two, three):
        self.two, self.three = two, three


ANY = object()

INFO = {
    b"Capacity": 100, b"Size": 240, b"Number of filters": 1, b"Number of items inserted": 3, b"Expansion rate": 2,
}
CF_INFO = {
    b"Size": 1080, b"Number of buckets": 512, b"Number of filters": 1, b"Number of items inserted": 4,
    b"Number of items deleted": 0, b"Bucket size": 2, b"Expansion rate": 1, b"Max iterations": 20,
}
HEADER = bytes.fromhex(
    "0300000000000000" "01000000" "05000000" "02000000" "9000000000000000" "8004000000000000" "0300000000000000"
    "7b14ae47e17a743f" "e9862fb2350e2640" "08000000" "6400000000000000" "00"
)

ROWS = [
    # Bloom filters that come by themselves.
    ("BF.ADD auto x", True), ("BF.ADD auto x", False), ("BF.MADD auto x y z", [False, True, True]),
    ("BF.EXISTS auto x", True), ("BF.EXISTS auto q", False), ("BF.MEXISTS auto x y q", [True, True, False]),
    ("BF.EXISTS none x", False), ("BF.MEXISTS none x y", [False, False]),
    ("SET string x", b"OK"), ("BF.EXISTS string x", False), ("BF.MEXISTS string x y", [False, False]),
    ("BF.CARD auto", 3), ("BF.CARD none", 0),
    ("BF.INFO auto", INFO),
    ("BF.INFO auto CAPACITY", Only([100], {b"Capacity": 100})), ("BF.INFO auto size", Only([240], {b"Size": 240})),
    ("BF.INFO auto FILTERS", Only([1], {b"Number of filters": 1})),
    ("BF.INFO auto ITEMS", Only([3], {b"Number of items inserted": 3})),
    ("BF.INFO auto EXPANSION", Only([2], {b"Expansion rate": 2})),
    ("BF.DEBUG auto", [b"size:3", b"bytes:144 bits:1152 hashes:8 hashwidth:64 capacity:100 size:3 ratio:0.005"]),
    ("BF.SCANDUMP auto 0", [1, HEADER]), ("BF.SCANDUMP auto 1", [145, ANY]), ("BF.SCANDUMP auto 145", [0, b""]),
    ("BF.SCANDUMP auto 99999999", [0, b""]),
    # ... that are reserved.
    ("BF.RESERVE res 0.001 1000", b"OK"), ("BF.RESERVE token 0.001 1000 FOO", b"OK"),
    ("BF.RESERVE low 0.01 100 expansion 4", b"OK"), ("BF.INFO low EXPANSION", Only([4], {b"Expansion rate": 4})),
    ("BF.RESERVE fixed 0.01 2 NONSCALING", b"OK"), ("BF.INFO fixed EXPANSION", Only([None], {b"Expansion rate": None})),
    ("BF.RESERVE zero 0.01 2 EXPANSION 0", b"OK"), ("BF.INFO zero EXPANSION", Only([None], {b"Expansion rate": None})),
    ("BF.RESERVE loose 0.9 100 NONSCALING", b"OK"),
    ("BF.DEBUG loose", [b"size:0", b"bytes:40 bits:320 hashes:3 hashwidth:64 capacity:100 size:0 ratio:0.25"]),
    # ... that are inserted into.
    ("BF.INSERT ins ITEMS a b a", [True, True, False]), ("BF.INSERT ins NOCREATE ITEMS c", [True]),
    ("BF.INSERT opt CAPACITY 10 ERROR 0.1 EXPANSION 3 ITEMS a", [True]),
    ("BF.INFO opt", {b"Capacity": 10, b"Size": 104, b"Number of filters": 1, b"Number of items inserted": 1, b"Expansion rate": 3}),
    ("BF.INSERT opt CAPACITY 99 ITEMS a b", [False, True]), ("BF.INFO opt CAPACITY", Only([10], {b"Capacity": 10})),
    ("BF.INSERT letters c 7 er 0.2 n i x", [True]), ("BF.INFO letters EXPANSION", Only([None], {b"Expansion rate": None})),
    # ... that are moved and merged.
    ("BF.MERGE auto res", b"OK"), ("BF.MERGE fresh auto ins", b"OK"), ("BF.MEXISTS fresh x y z a b c q", [True] * 6 + [False]),
    # Filters of our own.
    ("BF.RESERVE keyed 0.01 100 KEYED", b"OK"), ("BF.MADD keyed a b a", [True, True, False]), ("BF.MEXISTS keyed a b c", [True, True, False]),
    ("BF.INFO keyed", {**INFO, b"Number of items inserted": 2}), ("BF.INFO keyed LAYOUT", Only([b"keyed"], {b"Layout": b"keyed"})),
    ("BF.RESERVE blocked 0.01 1000 BLOCKED NONSCALING", b"OK"), ("BF.ADD blocked a", True), ("BF.ADD blocked a", False),
    ("BF.EXISTS blocked a", True), ("BF.EXISTS blocked b", False), ("BF.CARD blocked", 1),
    ("BF.INFO blocked LAYOUT", Only([b"blocked"], {b"Layout": b"blocked"})),
    ("BF.RESERVE window 0.01 100 WINDOW 100", b"OK"), ("BF.MADD window a b a", [True, True, False]), ("BF.EXISTS window a", True),
    ("BF.INFO window CAPACITY", Only([100], {b"Capacity": 100})), ("BF.INFO window ESTIMATE", Only([ANY], {b"Estimated number of items": ANY})),
    ("BF.INFO auto FILL", Only([b"0.020833333333333332"], {b"Fill": 0.020833333333333332})),
    ("BF.INFO auto ESTIMATE", Only([3], {b"Estimated number of items": 3})),
    ("BF.INFO auto RATE", Only([ANY], {b"Current error rate": ANY})),
    # Cuckoo filters.
    ("CF.ADD cauto x", True), ("CF.ADD cauto x", True), ("CF.ADDNX cauto x", False), ("CF.ADDNX cauto y", True),
    ("CF.INSERT cauto ITEMS z", [True]), ("CF.COUNT cauto x", 2), ("CF.COUNT cauto q", 0), ("CF.COUNT none x", 0),
    ("CF.EXISTS cauto x", True), ("CF.EXISTS cauto q", False), ("CF.EXISTS none x", False), ("CF.EXISTS string x", False),
    ("CF.MEXISTS cauto x y q", [True, True, False]), ("CF.MEXISTS string x", [False]),
    ("CF.INFO cauto", CF_INFO), ("CF.DEBUG cauto", b"bktsize:2 buckets:512 items:4 deletes:0 filters:1 max_iterations:20 expansion:1"),
    ("CF.SCANDUMP cauto 0", [1, ANY]), ("CF.SCANDUMP cauto 1", [1025, ANY]), ("CF.SCANDUMP cauto 1025", [0, None]),
    ("CF.DEL cauto x", True), ("CF.DEL cauto x", True), ("CF.DEL cauto x", False), ("CF.INFO cauto", {
        **CF_INFO, b"Number of items inserted": 2, b"Number of items deleted": 2}),
    ("CF.COMPACT cauto", b"OK"),
    ("CF.RESERVE cempty 1000 BUCKETSIZE 4 MAXITERATIONS 10 EXPANSION 3", b"OK"), ("CF.SCANDUMP cempty 0", [0, None]),
    ("CF.INFO cempty", {b"Size": 1080, b"Number of buckets": 256, b"Number of filters": 1, b"Number of items inserted": 0,
                        b"Number of items deleted": 0, b"Bucket size": 4, b"Expansion rate": 4, b"Max iterations": 10}),
    ("CF.INSERT cins CAPACITY 64 ITEMS a b a", [True, True, True]), ("CF.INSERT cins NOCREATE ITEMS c", [True]),
    ("CF.INSERTNX cins ITEMS a d", Only([0, 1], [0, 1])), ("CF.INSERTNX cnew CAPACITY 64 ITEMS a a", Only([1, 0], [1, 0])),
    ("CF.RESERVE cfull 2 BUCKETSIZE 1 EXPANSION 0", b"OK"), ("CF.INSERT cfull ITEMS a", [True]),
    ("CF.RESERVE crate 1000 ERROR 0.001", b"OK"), ("CF.INSERT crate ITEMS a b", [True, True]), ("CF.MEXISTS crate a b c", [True, True, False]),
    ("CF.COUNT crate a", 1), ("CF.DEL crate a", True), ("CF.DEL crate a", False), ("CF.INFO crate LAYOUT", Only([b"rated"], {b"Layout": b"rated"})),
    ("CF.INFO cauto FILL", Only([b"0.001953125"], {b"Fill": 0.001953125})), ("CF.INFO cauto ESTIMATE", Only([2], {b"Estimated number of items": 2})),
    ("CF.COMPACT crate", b"OK"),
]


def expected(value, protocol, maps):
    """What a reply should look like to this client."""
    if isinstance(value, Only):
        return value.three if protocol == 3 and maps else value.two
    if isinstance(value, bool):
        return value if protocol == 3 and maps else int(value)
    if isinstance(value, dict):
        return value if protocol == 3 and maps else [part for pair in value.items() for part in pair]
    if isinstance(value, list):
        return [expected(part, protocol, maps) for part in value]
    return value


def same(got, want):
    if want is ANY:
        return True
    if isinstance(want, dict):
        return isinstance(got, dict) and got.keys() == want.keys() and all(same(got[key], want[key]) for key in want)
    if isinstance(want, list):
        return isinstance(got, list) and len(got) == len(want) and all(map(same, got, want))
    if isinstance(got, float) and isinstance(want, bytes):
        # Doubles of RESP3 where there are no maps.
        return got == float(want)
    return type(got) is type(want) and got == want


def table(port, engine):
    failures = 0
    for protocol in (2, 3):
        client = redis.Redis(port=port, protocol=protocol)
        # The replies as they came, without redis-py's ideas of them.
        client.response_callbacks.clear()
        client.execute_command("FLUSHALL")
        for line, value in ROWS:
            want = expected(value, protocol, engine != "Redis62")
            got = client.execute_command(*line.split(" "))
            if same(got, want):
                print(f"ok RESP{protocol} {line}")
            else:
                failures += 1
                print(f"RESP{protocol} {line}: {got!r} instead of {want!r}")
    return failures


def errors(port):
    """The errors of errors.txt. redis-py takes the word ERR away."""
    failures = 0
    lines = pathlib.Path(__file__).with_name("errors.txt").read_text().splitlines()
    for protocol in (2, 3):
        client = redis.Redis(port=port, protocol=protocol)
        client.flushall()
        for line in [
            "SET string x", "BF.RESERVE bloom 0.01 100", "BF.RESERVE own 0.01 100 KEYED", "BF.RESERVE window 0.01 100 WINDOW 100",
            "CF.RESERVE cuckoo 100",
        ]:
            client.execute_command(*line.split(" "))
        client.execute_command("BF.LOADCHUNK", "loading", 1, b"umbeldmp\x64" + bytes(7))
        for line, text in (line.split(" -> ") for line in lines):
            try:
                got = client.execute_command(*line.split(" "))
            except redis.ResponseError as error:
                got = str(error)
            if got == text.removeprefix("ERR "):
                print(f"ok RESP{protocol} {line}")
            else:
                failures += 1
                print(f"RESP{protocol} {line}: {got!r} instead of {text!r}")
    return failures


def redis_py_itself(port):
    """The calls that redis-py has for these commands, with its own reading of replies."""
    client = redis.Redis(port=port)
    client.flushall()
    bf, cf = client.bf(), client.cf()
    assert bf.create("b", 0.01, 1000) and bf.add("b", "x") and bf.madd("b", "x", "y") == [0, 1]
    assert bf.exists("b", "x") and bf.mexists("b", "x", "q") == [1, 0] and bf.card("b") == 2
    assert bf.insert("i", ["a", "b"], capacity=100, error=0.01, expansion=2) == [1, 1]
    info = bf.info("b")
    assert info.get("capacity") == 1000 and info.get("insertedNum") == 2 and info.get("filterNum") == 1
    number, chunks = 0, []
    while True:
        number, data = bf.scandump("b", number)
        if number == 0:
            break
        chunks.append((number, data))
    for number, data in chunks:
        assert bf.loadchunk("copy", number, data)
    assert client.dump("b") == client.dump("copy")
    assert cf.create("c", 1000) and cf.add("c", "x") and cf.addnx("c", "x") == 0 and cf.insert("c", ["y"]) == [1]
    assert cf.insertnx("c", ["y", "z"]) == [0, 1] and cf.exists("c", "x") and cf.count("c", "x") == 1
    assert cf.delete("c", "x") and cf.info("c").get("insertedNum") == 2
    print("ok redis-py")


if __name__ == "__main__":
    port, engine = int(sys.argv[1]), sys.argv[2]
    failed = table(port, engine) + errors(port)
    redis_py_itself(port)
    sys.exit(1 if failed else 0)
