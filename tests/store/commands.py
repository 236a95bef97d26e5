"""Random commands of every family, mostly on keys of the right type, sometimes invalid."""

import itertools

KEYS = {kind: [f"{kind}{i}" for i in range(3)] for kind in "slhezx"}  # e: sets, x: streams
ALL = [key for keys in KEYS.values() for key in keys]
SMALL = ["0", "1", "2", "3", "-1", "-2", "10", "100"]
NUMBERS = SMALL + ["9223372036854775807", "-9223372036854775808", "9223372036854775808", "007",
                   "+1", " 1", "1.5", "abc", "", "-0"]
REALS = ["0", "1", "1.5", "-2.25", "3.0e2", "inf", "-inf", "+inf", "nan", "0x10", "abc", "",
         "1e400", " 1", "0.1", "100"]
GOOD_REALS = ["0", "1", "1.5", "-2.25", "3.0e2", "inf", "-inf", "0.1", "100", "2"]
VALUES = ["a", "b", "c", "x y", "", "10", "-7", "3.14", "\r\n", "hello world", "\0", "é", "0"]
MEMBERS = list("abcdefghij") + ["1", "2", "3", "", "ab", "aa"]
FIELDS = ["f1", "f2", "f3", "f4", "n", ""]
LIMITS = ["-inf", "+inf", "0", "1", "2", "(1", "(0", "3.0e2", "(inf", "-2.25", "abc", "(",
          "(-2.25", "100"]
BAD_TIMES = ["0", "-1", "abc", "9223372036854775807"]
DATES = ["1", "0", "-5", "4102444800", "abc", "9223372036854775807"]
PATTERNS = ["*", "?", "[a-c]*", "*1", "s*", "[^s]*", "\\a", "l[0-1]", "*a*", ""]
IDS = ["1-1", "1-2", "2-0", "2-1", "3-5", "5", "7-0", "9-9", "20", "18446744073709551615"]
BAD_IDS = ["x", "", "-1", "1-x", "1-2-3", "18446744073709551616", "-", "+", "$", ">"]
BOUNDS = ["-", "+", "(1-1", "(2-1", "(5", "1", "2", "5-3", "(18446744073709551615-"
          "18446744073709551615", "(0-0", "("]
SHORT = ["LPOP", "RPOP", "ZPOPMIN", "ZPOPMAX", "EXPIRE", "PEXPIRE", "EXPIREAT", "PEXPIREAT",
         "XPENDING"]  # which have further arguments in redis-server only
GROUPS = ["g1", "g2"]
CONSUMERS = ["alice", "bob", ""]


class Maker:
    """Generates random commands."""

    def __init__(self, draw):
        self.draw = draw
        self.one = draw.choice

    def chance(self, share):
        return self.draw.random() < share

    def key(self, kind):
        return self.one(ALL) if self.chance(0.08) else self.one(KEYS[kind])

    def time(self, scale=1):
        """A random time, almost never the same twice: so its order relative to another time does
        not depend on when the commands run."""
        if self.chance(0.3):
            return self.one(BAD_TIMES)
        return str(self.draw.randint(100, 100000) * scale + self.draw.randint(0, scale - 1))

    def some(self, values, most=4):
        return [self.one(values) for _ in range(self.draw.randint(1, most))]

    def maybe(self, share, *words):
        return list(words) if self.chance(share) else []

    def options(self, *choices):
        """Some of the choices, each a function or a list, in random order."""
        chosen = [c for c in choices if self.chance(0.25)]
        self.draw.shuffle(chosen)
        return [word for c in chosen for word in (c() if callable(c) else c)]

    def case(self, word):
        return self.one([word, word.lower(), word.upper(), word.capitalize()])

    # --- families ------------------------------------------------------------

    def strings(self):
        k, v, n = self.key("s"), self.one(VALUES), self.one(NUMBERS)
        times = [lambda: ["EX", self.time()], lambda: ["PX", self.time(1000)],
                 lambda: ["EXAT", "4102444800"], lambda: ["PXAT", "4102444800000"]]
        return self.one([
            lambda: ["SET", k, v],
            lambda: ["SET", k, v, *self.options(["NX"], ["XX"], ["KEEPTTL"], *times)],
            lambda: ["SET", k, v, "KEEPTTL"],
            lambda: ["SET", k, v, "EX", self.time()],
            lambda: ["GET", k], lambda: ["SETEX", k, self.time(), v],
            lambda: ["PSETEX", k, self.time(1000), v],
            lambda: ["MGET", *self.some(ALL)],
            lambda: ["MSET", *self.some([k, *KEYS["s"]], 5)],
            lambda: ["STRLEN", k],
            lambda: ["INCR", k], lambda: ["DECR", k], lambda: ["INCRBY", k, n],
            lambda: ["DECRBY", k, n],
        ])()

    def hashes(self):
        k, f = self.key("h"), self.one(FIELDS)
        return self.one([
            lambda: ["HSET", k, *self.some(FIELDS + VALUES, 6)],
            lambda: ["HSET", k, f, self.one(VALUES)], lambda: ["HSET", k, f, self.one(NUMBERS)],
            lambda: ["HGET", k, f], lambda: ["HMGET", k, *self.some(FIELDS)],
            lambda: ["HGETALL", k], lambda: ["HDEL", k, *self.some(FIELDS)],
            lambda: ["HLEN", k], lambda: ["HEXISTS", k, f], lambda: ["HKEYS", k],
            lambda: ["HVALS", k], lambda: ["HINCRBY", k, f, self.one(NUMBERS)],
        ])()

    def lists(self):
        k, n = self.key("l"), self.one(SMALL)
        return self.one([
            lambda: ["LPUSH", k, *self.some(MEMBERS)], lambda: ["RPUSH", k, *self.some(MEMBERS)],
            lambda: ["RPUSH", k, *self.some(MEMBERS, 8)],
            lambda: ["LPOP", k], lambda: ["RPOP", k],
            lambda: ["LLEN", k], lambda: ["LRANGE", k, n, self.one(NUMBERS)],
            lambda: ["LRANGE", k, self.one(NUMBERS), n], lambda: ["LRANGE", k, "0", "-1"],
            lambda: ["LTRIM", k, n, self.one(SMALL)],
        ])()

    def sets(self):
        k, v = self.key("e"), self.one(MEMBERS)
        return self.one([
            lambda: ["SADD", k, *self.some(MEMBERS, 6)], lambda: ["SADD", k, *self.some(MEMBERS)],
            lambda: ["SREM", k, *self.some(MEMBERS)], lambda: ["SMEMBERS", k],
            lambda: ["SISMEMBER", k, v], lambda: ["SCARD", k],
        ])()

    def pairs(self):
        return [word for _ in range(self.draw.randint(1, 4))
                for word in (self.one(GOOD_REALS), self.one(MEMBERS))]

    def sorted_sets(self):
        k, v, n = self.key("z"), self.one(MEMBERS), self.one(SMALL)
        low, high = self.one(LIMITS), self.one(LIMITS)
        scores = self.maybe(0.4, "WITHSCORES")
        limit = self.maybe(0.3, "LIMIT", n, self.one(SMALL))
        return self.one([
            lambda: ["ZADD", k, *self.pairs()], lambda: ["ZADD", k, *self.pairs()],
            lambda: ["ZADD", k, self.one(REALS), v], lambda: ["ZINCRBY", k, self.one(REALS), v],
            lambda: ["ZREM", k, *self.some(MEMBERS)], lambda: ["ZCARD", k],
            lambda: ["ZSCORE", k, v], lambda: ["ZRANK", k, v], lambda: ["ZREVRANK", k, v],
            lambda: ["ZRANGE", k, n, self.one(SMALL), *scores],
            lambda: ["ZRANGE", k, "0", "-1", *scores],
            lambda: ["ZRANGE", k, low, high, "BYSCORE", *self.maybe(0.3, "REV"), *scores, *limit],
            lambda: ["ZRANGE", k, n, self.one(SMALL), *self.maybe(0.5, "REV"), *scores, *limit],
            lambda: ["ZREVRANGE", k, n, self.one(SMALL), *scores],
            lambda: ["ZRANGEBYSCORE", k, low, high, *scores, *limit],
            lambda: ["ZREVRANGEBYSCORE", k, low, high, *scores, *limit],
            lambda: ["ZCOUNT", k, low, high],
            lambda: ["ZREMRANGEBYRANK", k, n, self.one(SMALL)],
            lambda: ["ZREMRANGEBYSCORE", k, low, high],
            lambda: ["ZPOPMIN", k], lambda: ["ZPOPMAX", k],
        ])()

    def id(self):
        return self.one(BAD_IDS) if self.chance(0.06) else self.one(IDS)

    def bound(self):
        return self.one(BOUNDS + IDS + ["x"])

    def trim(self):
        """Not MINID with ~: what redis-server then removes depends on deleted entries, too."""
        if self.chance(0.4):
            return ["MINID", *self.maybe(0.3, "="), self.id()]
        return [self.one(["MAXLEN", "maxlen"]), *self.maybe(0.3, self.one("=~")), self.one(SMALL)]

    def entry(self):
        return self.some(FIELDS, 3) + (["v"] if self.chance(0.05) else [])

    def streams(self):
        k, n, g, c = self.key("x"), self.one(SMALL), self.one(GROUPS), self.one(CONSUMERS)
        count = self.maybe(0.5, "COUNT", n)
        return self.one([
            lambda: ["XADD", k, *self.maybe(0.3, *self.trim()), self.id(), "f", self.one(VALUES),
                     *self.entry(), "w"],
            lambda: ["XADD", k, self.one(["5-*", "8-*", "0-*", self.id()]), "f", self.one(VALUES)],
            lambda: ["XADD", k, self.id(), "f", self.one(VALUES)],
            lambda: ["XLEN", k], lambda: ["XDEL", k, *[self.id() for _ in range(2)]],
            lambda: ["XTRIM", k, *self.trim()],
            lambda: ["XRANGE", k, self.bound(), self.bound(), *count],
            lambda: ["XRANGE", k, "-", "+"], lambda: ["XREVRANGE", k, "+", "-", *count],
            lambda: ["XREVRANGE", k, self.bound(), self.bound(), *count],
            lambda: ["XREAD", *count, "STREAMS", k, self.key("x"), self.id(), self.id()],
            lambda: ["XREAD", *count, "STREAMS", k, self.one(["0", "$", self.id()])],
            lambda: ["XGROUP", "CREATE", k, g, self.one(["0", "$", self.id()]),
                     *self.maybe(0.5, "MKSTREAM")],
            lambda: ["XGROUP", "CREATE", k, g, "0", "MKSTREAM"],
            lambda: ["XGROUP", "DESTROY", k, g],
            lambda: ["XREADGROUP", "GROUP", g, c, *count, *self.maybe(0.2, "NOACK"), "STREAMS", k,
                     self.one([">", ">", ">", "0", self.id()])],
            lambda: ["XREADGROUP", "GROUP", "g1", c, "STREAMS", k, self.one([">", "0"])],
            lambda: ["XACK", k, g, *[self.id() for _ in range(2)]],
            lambda: ["XPENDING", k, g], lambda: ["XPENDING", k, "g1", "-", "+", "9"],
            lambda: ["XPENDING", k, g, self.bound(), self.bound(), n, *self.maybe(0.5, c)],
            lambda: ["XAUTOCLAIM", k, g, c, "0", self.one(["0", "-", self.id()]), *count],
            lambda: ["XAUTOCLAIM", k, "g1", c, self.one(["0", "100000", "x"]), "0"],
        ])()

    def keys(self):
        k = self.one(ALL)
        return self.one([
            lambda: ["DEL", *self.some(ALL)], lambda: ["UNLINK", k],
            lambda: ["EXISTS", *self.some(ALL)], lambda: ["TYPE", k],
            lambda: ["KEYS", self.one(PATTERNS)], lambda: ["DBSIZE"],
            lambda: ["EXPIRE", k, self.time()], lambda: ["PEXPIRE", k, self.time(1000)],
            lambda: ["EXPIREAT", k, self.one(DATES)],
            lambda: ["PEXPIREAT", k, self.one(["4102444800000", "1", "x"])],
            lambda: ["TTL", k], lambda: ["PTTL", k], lambda: ["PERSIST", k],
            lambda: ["SELECT", self.one(["0", "0", "16", "-1"])], lambda: ["ECHO", "e"],
            lambda: ["PING", *self.maybe(0.3, "p")], lambda: ["OBJECTS", "a", "b"],
        ])()

    def spoil(self, words):
        """Remove the last argument or add one, rarely."""
        if self.chance(0.97) or words[0] in SHORT:
            return words
        return words[:-1] if len(words) > 1 and self.chance(0.5) else words + [self.one(VALUES)]

    def command(self):
        family = self.draw.choices(
            [self.strings, self.hashes, self.lists, self.sets, self.sorted_sets, self.streams,
             self.keys], [6, 4, 5, 2, 7, 12, 4])[0]
        words = self.spoil(family())
        return [self.case(words[0]), *words[1:]]


def fill(draw):
    """Commands that create keys of every type."""
    some = lambda values, most: [draw.choice(values) for _ in range(draw.randint(1, most))]
    for i in "01":
        yield ["SET", "s" + i, draw.choice(VALUES + SMALL)]
        yield ["RPUSH", "l" + i, *some(MEMBERS, 10)]
        yield ["SADD", "e" + i, *some(MEMBERS, 8)]
        yield ["HSET", "h" + i, *[w for f in some(FIELDS, 4) for w in (f, draw.choice(VALUES))]]
        yield ["ZADD", "z" + i, *[w for m in some(MEMBERS, 8)
                                  for w in (draw.choice(GOOD_REALS), m)]]
        for _ in range(draw.randint(1, 4)):
            yield ["XADD", "x" + i, draw.choice(IDS), "f", draw.choice(VALUES)]
        yield ["XGROUP", "CREATE", "x" + i, "g1", draw.choice(["0", "0", "$"])]


def look():
    """Commands that read all keys."""
    show = {"s": ["GET"], "l": ["LRANGE", "0", "-1"], "e": ["SMEMBERS"], "h": ["HGETALL"],
            "z": ["ZRANGE", "0", "-1", "WITHSCORES"], "x": ["XRANGE", "-", "+"]}
    reads = [[show[kind][0], key, *show[kind][1:]] for kind in show for key in KEYS[kind]]
    return reads + [["XPENDING", key, "g1", "-", "+", "100"] for key in KEYS["x"]]


def make_sequence(draw):
    """About thirty commands; then read all keys."""
    maker, commands = Maker(draw), list(fill(draw))
    for family in (maker.strings, maker.lists, maker.sorted_sets, maker.hashes, maker.sets,
                   maker.streams):
        commands += [family() for _ in range(2)]
    commands += [maker.command() for _ in range(draw.randint(15, 30))]
    return commands + look()


# --- two clients -------------------------------------------------------------

CHANNELS = ["c1", "c2", "d1"]


def make_session(draw):
    """Steps of two clients, as (client, words).  One client may get messages because of the
    other, or wait for it."""
    maker, ids = Maker(draw), itertools.count(1)
    one, key = draw.choice, lambda: draw.choice(KEYS["s"][:2] + KEYS["l"][:1])
    change = [lambda: ["SET", key(), one(VALUES)], lambda: ["DEL", key()],
              lambda: ["INCR", key()], lambda: ["RPUSH", "l0", one(MEMBERS)],
              lambda: ["EXPIRE", key(), one(["100", "-1"])], lambda: ["GET", key()],
              lambda: ["LPOP", "l0"], lambda: ["PUBLISH", one(CHANNELS), one(VALUES)],
              lambda: ["FLUSHDB"] if maker.chance(0.1) else ["MGET", key(), key()]]
    listen = [lambda: ["SUBSCRIBE", *maker.some(CHANNELS, 2)],
              lambda: ["PSUBSCRIBE", one(["c*", "d?"])], lambda: ["UNSUBSCRIBE", one(CHANNELS)],
              lambda: ["PUNSUBSCRIBE", one(["c*", "d?"])],
              lambda: ["PING"], lambda: ["PING", "x"], lambda: ["GET", key()]]
    pop = [lambda: ["RPUSH", "l0", *maker.some(MEMBERS, 2)], lambda: ["BLPOP", "l0", "l1", "0"],
           lambda: ["BRPOP", "l1", "l0", "0"], lambda: ["LPUSH", "l1", "x"],
           lambda: ["LRANGE", "l0", "0", "-1"], lambda: ["SET", "l0", "x"], lambda: ["DEL", "l0"]]
    read = [lambda: ["XADD", one(["x0", "x1"]), str(next(ids)), "f", one(VALUES)],
            lambda: ["XADD", "x0", str(next(ids)), "f", one(VALUES)],
            lambda: ["XREAD", "BLOCK", "0", "STREAMS", "x0", "x1", "$", one(["$", "0", "5"])],
            lambda: ["XREAD", "COUNT", "1", "BLOCK", "0", "STREAMS", "x0", one(["0", "4", "8"])],
            lambda: ["XGROUP", "CREATE", "x0", "g1", one(["0", "$"]), "MKSTREAM"],
            lambda: ["XREADGROUP", "GROUP", "g1", one(CONSUMERS), "BLOCK", "0", "STREAMS", "x0",
                     one([">", ">", "0"])],
            lambda: ["XREADGROUP", "GROUP", "g1", "bob", "COUNT", "1", "STREAMS", "x0", ">"],
            lambda: ["XACK", "x0", "g1", "1", "2", "3"], lambda: ["XDEL", "x0", "1", "4"],
            lambda: ["XTRIM", "x0", "MAXLEN", "2"],
            lambda: one([["XGROUP", "DESTROY", "x0", "g1"], ["DEL", "x0"], ["LPUSH", "x1", "a"],
                         ["EXPIRE", "x0", "-1"], ["FLUSHALL"], ["SET", "x0", "a"]])
            if maker.chance(0.5) else ["XLEN", "x0"]]
    first = draw.choice([listen, pop, read, change])
    steps = [(0, ["FLUSHALL"])]
    for _ in range(draw.randint(10, 25)):
        client = draw.randint(0, 1)
        family = first if client == 0 else \
            first if first in (pop, read) and maker.chance(0.7) else change
        steps.append((client, draw.choice(family)()))
    return steps


def release(number):
    """Commands that end some waits of a session."""
    return [["DEL", "l0", "l1"], ["RPUSH", "l0", *"abcdef"], ["RPUSH", "l1", "a"],
            *[step for key in ("x0", "x1") for step in (
                ["DEL", key], ["XGROUP", "CREATE", key, "g1", "0", "MKSTREAM"],
                ["XADD", key, str(1000 + number), "f", "v"])]]


# --- malformed requests ------------------------------------------------------

RAW = [
    b"PING\r\n", b"PING\n", b"\r\n\r\nPING\r\n", b"  PING  \r\n",
    b"*0\r\nPING\r\n", b"*-1\r\nPING\r\n", b"*x\r\n", b"*\r\n", b"*1\r\n",
    b"*1\r\n$x\r\n", b"*1\r\n$-1\r\n", b"*1\r\n$536870913\r\n", b"*1\r\n+PING\r\n", b"*1\r\n\r\n",
    b"*01\r\n$4\r\nPING\r\n", b"*1\r\n$04\r\nPING\r\n", b"*1\r\n$4\r\nPINGxxPING\r\n",
    b"*1\r\n$4\r\nPING\r\n*x\r\nPING\r\n",
    b"*2\r\n$4\r\nECHO\r\n$3\r\n\x00\r\n\r\n", b"*99999999999\r\n",
    b"QUIT\r\nPING\r\n", b"GET\r\nget a b\r\nGeT a\r\n",
    b"HELLO 4\r\nAUTH a b c d\r\nAUTH default a\r\n",
    b"SUBSCRIBE\r\nSUBSCRIBE a\r\nSET a b\r\nPING\r\nUNSUBSCRIBE\r\nUNSUBSCRIBE\r\n",
    b"PUNSUBSCRIBE x\r\n", b"RESET\r\nSELECT 17\r\n",
    b"CLIENT SETNAME a\r\nCLIENT NOPE\r\n",
    b"PING a b\r\nECHO\r\n",
]
