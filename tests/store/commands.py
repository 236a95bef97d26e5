"""Random commands of every family, mostly on keys of the right type, sometimes invalid."""

KEYS = {kind: [f"{kind}{i}" for i in range(3)] for kind in "slhezy"}  # e: sets, y: equal scores
ALL = [key for kind, keys in KEYS.items() if kind != "y" for key in keys]
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
NAMES = ["-", "+", "[a", "(a", "[c", "(c", "[", "(", "[zz", "a", "", "[ab", "++"]
BAD_TIMES = ["0", "-1", "abc", "9223372036854775807"]
DATES = ["1", "0", "-5", "4102444800", "abc", "9223372036854775807"]
PATTERNS = ["*", "?", "[a-c]*", "*1", "s*", "[^s]*", "\\a", "l[0-1]", "*a*", ""]


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
            lambda: ["SET", k, v, *self.options(["NX"], ["XX"], ["GET"], ["KEEPTTL"], *times)],
            lambda: ["SET", k, v, "KEEPTTL"],
            lambda: ["SET", k, v, "EX", self.time()],
            lambda: ["GET", k], lambda: ["GETSET", k, v], lambda: ["GETDEL", k],
            lambda: ["GETEX", k, *self.options(["PERSIST"], *times)],
            lambda: ["SETNX", k, v], lambda: ["SETEX", k, self.time(), v],
            lambda: ["PSETEX", k, self.time(1000), v],
            lambda: ["MGET", *self.some(ALL)],
            lambda: ["MSET", *self.some([k, *KEYS["s"]], 5)],
            lambda: ["MSETNX", *self.some([k, *KEYS["s"], "new1", "new2"], 4)],
            lambda: ["APPEND", k, v], lambda: ["STRLEN", k],
            lambda: ["SETRANGE", k, self.one(SMALL + ["536870912", "x"]), v],
            lambda: ["GETRANGE", k, self.one(SMALL), self.one(SMALL)],
            lambda: ["SUBSTR", k, self.one(SMALL), self.one(SMALL)],
            lambda: ["INCR", k], lambda: ["DECR", k], lambda: ["INCRBY", k, n],
            lambda: ["DECRBY", k, n], lambda: ["INCRBYFLOAT", k, self.one(REALS)],
            lambda: ["SETBIT", k, self.one(SMALL + ["x", "5000000000"]), self.one(["0", "1", "2"])],
            lambda: ["GETBIT", k, self.one(SMALL)],
            lambda: ["BITCOUNT", k, *self.maybe(0.5, self.one(SMALL), self.one(SMALL)),
                     *self.maybe(0.2, self.one(["BIT", "BYTE", "x"]))],
        ])()

    def hashes(self):
        k, f = self.key("h"), self.one(FIELDS)
        return self.one([
            lambda: ["HSET", k, *self.some(FIELDS + VALUES, 6)],
            lambda: ["HSET", k, f, self.one(VALUES)], lambda: ["HSET", k, f, self.one(NUMBERS)],
            lambda: ["HMSET", k, f, self.one(VALUES), self.one(FIELDS), "v"],
            lambda: ["HSETNX", k, f, self.one(VALUES)], lambda: ["HGET", k, f],
            lambda: ["HMGET", k, *self.some(FIELDS)], lambda: ["HGETALL", k],
            lambda: ["HDEL", k, *self.some(FIELDS)], lambda: ["HLEN", k],
            lambda: ["HEXISTS", k, f], lambda: ["HKEYS", k], lambda: ["HVALS", k],
            lambda: ["HSTRLEN", k, f], lambda: ["HINCRBY", k, f, self.one(NUMBERS)],
            lambda: ["HINCRBYFLOAT", k, f, self.one(REALS)],
            lambda: ["HRANDFIELD", k, "100", *self.maybe(0.3, "WITHVALUES")],
            lambda: ["whole", "HSCAN", k, "0", *self.scan_options()],
        ])()

    def lists(self):
        k, v, n = self.key("l"), self.one(MEMBERS), self.one(SMALL)
        side = self.one(["LEFT", "RIGHT", "left", "UP"])
        return self.one([
            lambda: ["LPUSH", k, *self.some(MEMBERS)], lambda: ["RPUSH", k, *self.some(MEMBERS)],
            lambda: ["RPUSH", k, *self.some(MEMBERS, 8)],
            lambda: ["LPUSHX", k, v], lambda: ["RPUSHX", k, v],
            lambda: ["LPOP", k, *self.maybe(0.4, n)], lambda: ["RPOP", k, *self.maybe(0.4, n)],
            lambda: ["LLEN", k], lambda: ["LRANGE", k, n, self.one(SMALL)],
            lambda: ["LRANGE", k, "0", "-1"], lambda: ["LINDEX", k, self.one(NUMBERS)],
            lambda: ["LSET", k, n, v],
            lambda: ["LINSERT", k, self.one(["BEFORE", "AFTER", "before", "x"]), v, "new"],
            lambda: ["LREM", k, self.one(SMALL), v],
            lambda: ["LTRIM", k, n, self.one(SMALL)],
            lambda: ["LPOS", k, v, *self.options(
                lambda: ["RANK", self.one(SMALL)], lambda: ["COUNT", self.one(SMALL)],
                lambda: ["MAXLEN", self.one(SMALL)])],
            lambda: ["LMOVE", k, self.key("l"), side, self.one(["LEFT", "RIGHT"])],
            lambda: ["RPOPLPUSH", k, self.key("l")],
            lambda: ["LMPOP", self.one(["1", "2", "0", "x"]), k, self.key("l"), side,
                     *self.maybe(0.3, "COUNT", n)],
        ])()

    def sets(self):
        k, v, n = self.key("e"), self.one(MEMBERS), self.one(SMALL)
        many = [self.key("e") for _ in range(self.draw.randint(1, 3))]
        return self.one([
            lambda: ["SADD", k, *self.some(MEMBERS, 6)], lambda: ["SADD", k, *self.some(MEMBERS)],
            lambda: ["SREM", k, *self.some(MEMBERS)], lambda: ["SMEMBERS", k],
            lambda: ["SISMEMBER", k, v], lambda: ["SMISMEMBER", k, *self.some(MEMBERS)],
            lambda: ["SCARD", k], lambda: ["SPOP", k, "100"],
            lambda: ["SPOP", k, self.one(["0", "-1", "x"])],
            lambda: ["SRANDMEMBER", k, "100"], lambda: ["SMOVE", k, self.key("e"), v],
            lambda: ["SINTER", *many], lambda: ["SUNION", *many], lambda: ["SDIFF", *many],
            lambda: ["SINTERSTORE", k, *many], lambda: ["SUNIONSTORE", k, *many],
            lambda: ["SDIFFSTORE", k, *many],
            lambda: ["SINTERCARD", self.one([str(len(many)), "1", "0", "9", "x"]), *many,
                     *self.maybe(0.4, "LIMIT", n)],
            lambda: ["whole", "SSCAN", k, "0", *self.scan_options()],
        ])()

    def pairs(self):
        return [word for _ in range(self.draw.randint(1, 4))
                for word in (self.one(GOOD_REALS), self.one(MEMBERS))]

    def sorted_sets(self):
        k, v, n = self.key("z"), self.one(MEMBERS), self.one(SMALL)
        y = self.one(KEYS["y"])
        low, high = self.one(LIMITS), self.one(LIMITS)
        a, b = self.one(NAMES), self.one(NAMES)
        scores = self.maybe(0.4, "WITHSCORES")
        limit = self.maybe(0.3, "LIMIT", n, self.one(SMALL))
        return self.one([
            lambda: ["ZADD", k, *self.pairs()], lambda: ["ZADD", k, *self.pairs()],
            lambda: ["ZADD", k, *self.options(["NX"], ["XX"], ["GT"], ["LT"], ["CH"], ["INCR"]),
                     *self.pairs()],
            lambda: ["ZADD", k, self.one(REALS), v], lambda: ["ZINCRBY", k, self.one(REALS), v],
            lambda: ["ZREM", k, *self.some(MEMBERS)], lambda: ["ZCARD", k],
            lambda: ["ZSCORE", k, v], lambda: ["ZMSCORE", k, *self.some(MEMBERS)],
            lambda: ["ZRANK", k, v], lambda: ["ZREVRANK", k, v],
            lambda: ["ZRANGE", k, n, self.one(SMALL), *scores],
            lambda: ["ZRANGE", k, "0", "-1", *scores],
            lambda: ["ZRANGE", k, low, high, "BYSCORE", *self.maybe(0.3, "REV"), *scores, *limit],
            lambda: ["ZADD", y, *[word for m in self.some(MEMBERS, 8) for word in ("0", m)]],
            lambda: ["ZRANGE", y, a, b, "BYLEX", *self.maybe(0.3, "REV"), *limit, *scores],
            lambda: ["ZRANGE", k, n, self.one(SMALL), *self.maybe(0.5, "REV"), *scores, *limit],
            lambda: ["ZREVRANGE", k, n, self.one(SMALL), *scores],
            lambda: ["ZRANGEBYSCORE", k, low, high, *scores, *limit],
            lambda: ["ZREVRANGEBYSCORE", k, low, high, *scores, *limit],
            lambda: ["ZRANGEBYLEX", y, a, b, *limit], lambda: ["ZREVRANGEBYLEX", y, a, b, *limit],
            lambda: ["ZRANGESTORE", self.key("z"), k, n, self.one(SMALL), *self.maybe(0.3, "REV")],
            lambda: ["ZRANGESTORE", self.key("z"), k, low, high, "BYSCORE", *limit],
            lambda: ["ZCOUNT", k, low, high], lambda: ["ZLEXCOUNT", y, a, b],
            lambda: ["ZREMRANGEBYRANK", k, n, self.one(SMALL)],
            lambda: ["ZREMRANGEBYSCORE", k, low, high], lambda: ["ZREMRANGEBYLEX", y, a, b],
            lambda: ["ZPOPMIN", k, *self.maybe(0.4, n)],
            lambda: ["ZPOPMAX", k, *self.maybe(0.4, n)],
            lambda: ["ZRANDMEMBER", k, "100", *self.maybe(0.3, "WITHSCORES")],
            lambda: ["whole", "ZSCAN", k, "0", *self.scan_options()],
        ])()

    def sorted_sums(self):
        many = [self.key(self.one("zze")) for _ in range(self.draw.randint(1, 3))]
        count = self.one([str(len(many))] * 8 + ["0", "9", "x", "-1"])
        weights = self.maybe(0.4, "WEIGHTS", *[self.one(REALS[:6]) for _ in many])
        more = self.maybe(0.4, "AGGREGATE", self.one(["SUM", "MIN", "MAX", "x"]))
        scores = self.maybe(0.5, "WITHSCORES")
        return self.one([
            lambda: ["ZUNION", count, *many, *weights, *more, *scores],
            lambda: ["ZINTER", count, *many, *weights, *more, *scores],
            lambda: ["ZDIFF", count, *many, *scores],
            lambda: ["ZUNIONSTORE", self.key("z"), count, *many, *weights, *more],
            lambda: ["ZINTERSTORE", self.key("z"), count, *many, *weights, *more],
            lambda: ["ZDIFFSTORE", self.key("z"), count, *many],
            lambda: ["ZINTERCARD", count, *many, *self.maybe(0.4, "LIMIT", self.one(SMALL))],
        ])()

    def keys(self):
        k, other = self.one(ALL), self.one(ALL)
        when = self.options(["NX"], ["XX"], ["GT"], ["LT"], ["ZZ"])
        return self.one([
            lambda: ["DEL", *self.some(ALL)], lambda: ["UNLINK", k],
            lambda: ["EXISTS", *self.some(ALL)], lambda: ["TOUCH", *self.some(ALL)],
            lambda: ["TYPE", k], lambda: ["RENAME", k, other], lambda: ["RENAMENX", k, other],
            lambda: ["COPY", k, other, *self.maybe(0.4, "REPLACE"),
                     *self.maybe(0.2, "DB", self.one(["0", "3", "99", "x"]))],
            lambda: ["MOVE", k, self.one(["0", "3", "99", "x"])],
            lambda: ["KEYS", self.one(PATTERNS)], lambda: ["DBSIZE"],
            lambda: ["EXPIRE", k, self.time(), *when],
            lambda: ["EXPIRE", k, self.time(), *when],
            lambda: ["PEXPIRE", k, self.time(1000), *when],
            lambda: ["EXPIREAT", k, self.one(DATES), *when],
            lambda: ["PEXPIREAT", k, self.one(["4102444800000", "1", "x"]), *when],
            lambda: ["TTL", k], lambda: ["PTTL", k], lambda: ["EXPIRETIME", k],
            lambda: ["PEXPIRETIME", k], lambda: ["PERSIST", k], lambda: ["SCAN", "x"],
            lambda: ["whole", "SCAN", "0", *self.scan_options(True)],
            lambda: ["SELECT", self.one(["0", "0", "16", "-1", "x"])], lambda: ["ECHO", "e"],
            lambda: ["PING", *self.maybe(0.3, "p")], lambda: ["WAIT", "0", "0"],
            lambda: ["OBJECTS", "a", "b"], lambda: ["WATCH", k], lambda: ["UNWATCH"],
        ])()

    def scan_options(self, keys=False):
        return self.options(lambda: ["MATCH", self.one(PATTERNS)],
                            lambda: ["COUNT", self.one(["1", "100", "5"] if keys else SMALL)],
                            *([lambda: ["TYPE", self.one(["list", "string", "zset"])]]
                              if keys else []))

    def spoil(self, words):
        """Remove the last argument or add one, rarely."""
        if words[0] in ("whole", "SPOP") or self.chance(0.97):
            return words
        if len(words) > 1 and self.chance(0.5):
            return words[:-1] if words[0] not in ("SRANDMEMBER", "HRANDFIELD", "ZRANDMEMBER",
                                                  "SCAN", "HSCAN", "SSCAN", "ZSCAN") else words
        return words + [self.one(VALUES)]

    def command(self):
        family = self.draw.choices(
            [self.strings, self.hashes, self.lists, self.sets, self.sorted_sets, self.sorted_sums,
             self.keys], [6, 4, 5, 4, 7, 3, 6])[0]
        words = self.spoil(family())
        return [words[0], *words[1:]] if words[0] == "whole" else [self.case(words[0]), *words[1:]]


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
        yield ["ZADD", "y" + i, *[w for m in some(MEMBERS, 8) for w in ("0", m)]]


def look():
    """Commands that read all keys."""
    show = {"s": ["GET"], "l": ["LRANGE", "0", "-1"], "e": ["SMEMBERS"], "h": ["HGETALL"],
            "z": ["ZRANGE", "0", "-1", "WITHSCORES"], "y": ["ZRANGE", "0", "-1"]}
    return [[show[kind][0], key, *show[kind][1:]] for kind in show for key in KEYS[kind]]


def make_sequence(draw):
    """About thirty commands, perhaps including a transaction; then read all keys."""
    maker, commands = Maker(draw), list(fill(draw))
    for family in (maker.strings, maker.lists, maker.sorted_sets, maker.hashes, maker.sets):
        commands += [family() for _ in range(2)]
    commands += [maker.command() for _ in range(draw.randint(15, 30))]
    if draw.random() < 0.3:
        inside = [c for c in (maker.command() for _ in range(draw.randint(0, 6)))
                  if c[0] != "whole"]
        commands += [["MULTI"], *inside, [draw.choice(["EXEC", "EXEC", "EXEC", "DISCARD"])]]
        commands += [maker.command() for _ in range(3)]
    return commands + look() + [["UNWATCH"]]


# --- two clients -------------------------------------------------------------

CHANNELS = ["c1", "c2", "d1"]


def make_session(draw):
    """Steps of two clients, as (who, words).  One client may get messages because of the other."""
    maker = Maker(draw)
    one, key = draw.choice, lambda: draw.choice(KEYS["s"][:2] + KEYS["l"][:1])
    change = [lambda: ["SET", key(), one(VALUES)], lambda: ["DEL", key()],
              lambda: ["INCR", key()], lambda: ["RPUSH", "l0", one(MEMBERS)],
              lambda: ["EXPIRE", key(), one(["100", "-1"])], lambda: ["GET", key()],
              lambda: ["RENAME", key(), key()], lambda: ["LPOP", "l0"],
              lambda: ["PUBLISH", one(CHANNELS), one(VALUES)],
              lambda: ["FLUSHDB"] if maker.chance(0.1) else ["MGET", key(), key()],
              lambda: ["PUBSUB", "NUMSUB", *maker.some(CHANNELS)],
              lambda: ["PUBSUB", "NUMPAT"], lambda: ["COPY", key(), key(), "REPLACE"]]
    listen = [lambda: ["SUBSCRIBE", *maker.some(CHANNELS, 2)],
              lambda: ["PSUBSCRIBE", one(["c*", "d?"])], lambda: ["UNSUBSCRIBE", one(CHANNELS)],
              lambda: ["PUNSUBSCRIBE", one(["c*", "d?"])],
              lambda: ["PING"], lambda: ["PING", "x"], lambda: ["GET", key()]]
    watch = [lambda: ["WATCH", key()], lambda: ["MULTI"], lambda: ["EXEC"], lambda: ["EXEC"],
             lambda: ["DISCARD"], lambda: ["UNWATCH"], lambda: ["SET", key(), one(VALUES)],
             lambda: ["GET", key()], lambda: ["NOPE"], lambda: ["BLPOP", "none", "0.01"]
             if maker.chance(0.02) else ["LLEN", "l0"]]
    wait = [lambda: ["RPUSH", "l0", *maker.some(MEMBERS, 2)], lambda: ["BLPOP", "l0", "l1", "0"],
            lambda: ["BRPOPLPUSH", "l0", "l1", "0"],
            lambda: ["BLMOVE", "l1", "l0", "LEFT", "LEFT", "0"],
            lambda: ["LRANGE", "l0", "0", "-1"], lambda: ["SET", "l0", "x"]]
    first = draw.choice([listen, watch, wait, change])
    steps = [(0, ["FLUSHALL"])]
    for _ in range(draw.randint(10, 25)):
        who = draw.randint(0, 1)
        family = first if who == 0 else wait if first is wait and maker.chance(0.7) else change
        steps.append((who, draw.choice(family)()))
    return steps


# --- malformed requests ------------------------------------------------------

RAW = [
    b"PING\r\n", b"PING\n", b"\r\n\r\nPING\r\n", b"  PING  \r\n", b"ECHO \"a b\" \r\n",
    b"ECHO 'a\\'b'\r\n", b'ECHO "\\x41\\n\\t\\q"\r\n', b'ECHO "a"b\r\n', b"ECHO 'a\r\n",
    b'ECHO "\r\n', b"*0\r\nPING\r\n", b"*-1\r\nPING\r\n", b"*x\r\n", b"*\r\n", b"*1\r\n",
    b"*1\r\n$x\r\n", b"*1\r\n$-1\r\n", b"*1\r\n$536870913\r\n", b"*1\r\n+PING\r\n", b"*1\r\n\r\n",
    b"*01\r\n$4\r\nPING\r\n", b"*1\r\n$04\r\nPING\r\n", b"*1\r\n$4\r\nPINGxxPING\r\n",
    b"*1\r\n$4\r\nPING\r\n*x\r\nPING\r\n", b"*1\r\n$0\r\n\r\n",
    b"*2\r\n$4\r\nECHO\r\n$3\r\n\x00\r\n\r\n", b"*99999999999\r\n", b"NOPE a b\r\n",
    b"N" * 200 + b" x\r\n", b"NOPE " + b"a" * 200 + b" b c\r\n", b"A\x01\xff b\r\n",
    b"QUIT\r\nPING\r\n", b"GET\r\nget a b\r\nGeT a\r\n",
    b"HELLO 4\r\nHELLO x\r\nHELLO 3 NOPE\r\nAUTH a\r\nAUTH a b c d\r\nAUTH default a\r\n",
    b"CLIENT\r\nCLIENT NOPE\r\nCLIENT SETNAME\r\nCLIENT SETNAME a\r\nCLIENT GETNAME\r\n",
    b"CLIENT SETNAME 'a b'\r\nCLIENT REPLY SKIP\r\nPING\r\nCLIENT REPLY x\r\n",
    b"CLIENT CACHING YES\r\n",
    b"CLIENT TRACKING x\r\nCLIENT TRACKING ON REDIRECT 999999\r\nCLIENT GETREDIR\r\n",
    b"CLIENT TRACKING ON OPTIN OPTOUT\r\nCLIENT NO-EVICT x\r\nCLIENT NO-EVICT on\r\n",
    b"CONFIG\r\nCONFIG GET\r\nCONFIG NOPE a\r\nCONFIG GET save\r\nCONFIG GET none\r\n",
    b"CONFIG SET none 1\r\nCONFIG SET maxmemory\r\nCOMMAND NOPE\r\nPUBSUB NOPE\r\nPUBSUB\r\n",
    b"SUBSCRIBE\r\nSUBSCRIBE a\r\nSET a b\r\nPING\r\nUNSUBSCRIBE\r\nUNSUBSCRIBE\r\n",
    b"PUNSUBSCRIBE x\r\n",
    b"MULTI\r\nMULTI\r\nWATCH a\r\nPING\r\nEXEC\r\nEXEC\r\nDISCARD\r\n",
    b"MULTI\r\nSUBSCRIBE a\r\nEXEC\r\nEXEC\r\nDISCARD\r\n",
    b"EXEC x\r\nMULTI\r\nPING\r\nEXEC x\r\nEXEC\r\nMULTI\r\nGET\r\nPING\r\nEXEC\r\n",
    b"BLPOP a x\r\nBLPOP a -1\r\nBLPOP a nan\r\nBLMOVE a b UP LEFT 0\r\n",
    b"RESET\r\nSELECT 17\r\n",
    b"FLUSHALL NOW\r\nFLUSHDB async\r\nPING a b\r\nECHO\r\nTIME x\r\nWAIT x 0\r\nLMPOP 1 a\r\n",
]
