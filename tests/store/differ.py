#!/usr/bin/env python3
"""Send the same commands to `weft store` and to redis-server, and compare the replies.

    tests/store/differ.py PROGRAM [--sequences N] [--seed S]

Each sequence is about thirty random commands after FLUSHALL, in RESP2 or RESP3, some of them
within MULTI.  The replies must be equal byte for byte, including error texts, except for the
order of unordered elements and for remaining times.  The same holds for sessions in which two
clients take turns and get messages because of each other, and for malformed requests.  Then
some mistakes are injected between this program and the store, one at a time.  Each of them must
be found.
"""
import argparse
import itertools
import os
import random
import socket
import sys
import tempfile

sys.dont_write_bytecode = True
from commands import RAW, make_sequence, make_session
from servers import Connection, Reply, start_redis, start_store

PLANTS_TRIED = 4000  # sequences within which an injected mistake must be found

SORTED = {"smembers", "sinter", "sunion", "sdiff", "keys", "hkeys", "hvals", "spop", "srandmember",
          "hrandfield", "zrandmember"}
PAIRS = {"hgetall"}
NEAR = {"ttl": 30, "pttl": 30000, "expiretime": 30, "pexpiretime": 30000}


# --- allowed differences -----------------------------------------------------

def in_pairs(values):
    return [tuple(values[i:i + 2]) for i in range(0, len(values), 2)]


def plain(words, reply):
    """A reply in a comparable form: unordered elements are sorted."""
    name, kind, value = words[0].lower(), *reply
    if kind not in ("array", "set", "map"):
        return reply
    if kind == "map" or name in PAIRS:
        return Reply(kind, sorted(in_pairs(value)))
    if name in SORTED:
        with_values = len(words) > 3 and words[3].lower() in ("withvalues", "withscores")
        flat = with_values and not (value and value[0][0] == "array")
        return Reply(kind, sorted(in_pairs(value) if flat else value))
    return reply


def same(words, ours, theirs):
    name = words[0].lower()
    if name in NEAR and ours[0] == theirs[0] == "integer" and min(ours[1], theirs[1]) > 0:
        return abs(ours[1] - theirs[1]) <= NEAR[name]
    return plain(words, ours) == plain(words, theirs)


def first_difference(commands, ours, theirs):
    """The index of the first reply that differs, or None."""
    queued = None
    for i, (words, a, b) in enumerate(zip(commands, ours, theirs)):
        name = words[0].lower()
        if a == b == Reply("status", b"QUEUED"):
            queued.append(words)
            continue
        if name == "exec" and a[0] == b[0] == "array":
            if len(a[1]) != len(b[1]) or not all(map(same, queued, a[1], b[1])):
                return i
            continue
        if name == "multi":
            queued = []
        if not same(words, a, b):
            return i
    return None


# --- requests and replies ----------------------------------------------------

class Scan(list):
    """A complete scan in place of one command."""


def whole_scan(connection, words):
    """All elements that a scan returns, without duplicates."""
    cursor, seen = b"0", set()
    while True:
        at = 1 if words[0].lower() == "scan" else 2
        reply = connection.ask(*words[:at], cursor, *words[at + 1:])
        if reply[0] != "array":
            return reply
        cursor = reply[1][0][1]
        values = reply[1][1][1]
        seen.update(values if words[0].lower() in ("scan", "sscan") else in_pairs(values))
        if cursor == b"0":
            return Reply("array", sorted(seen))


def talk(connection, commands):
    """The replies to commands.  Commands are sent together, except that a scan is sent alone."""
    replies, batch = [], []

    def flush():
        connection.send(batch)
        replies.extend(connection.read() for _ in batch)
        batch.clear()

    for words in commands:
        if words[0] == "whole":
            flush()
            replies.append(whole_scan(connection, words[1:]))
        else:
            batch.append(words)
    flush()
    return replies


class Planted:
    """A connection to a store with a mistake: it changes requests or replies."""

    def __init__(self, connection, request=None, reply=None):
        self.connection = connection
        self.change_request = request or (lambda words: words)
        self.change_reply = reply or (lambda reply: reply)

    def send(self, commands):
        self.connection.send([self.change_request(list(words)) for words in commands])

    def read(self):
        return self.change_reply(self.connection.read())

    def ask(self, *words):
        self.send([words])
        return self.read()


def swap_word(name, old, new):
    def change(words):
        if words[0].lower() == name:
            return [new if str(w).lower() == old else w for w in words]
        return words
    return change


def without_word(name, old):
    def change(words):
        return words if words[0].lower() != name else [w for w in words if w.lower() != old]
    return change


def close_limit(words):
    if words[0].lower() == "zrangebyscore" and len(words) > 2:
        words[2] = words[2].lstrip("(")
    return words


def other_null(reply):
    return Reply("null", "$") if reply == Reply("null", "*") else reply


PLANTS = {
    "LINSERT puts it on the other side": {"request": swap_word("linsert", "before", "after")},
    "SET forgets KEEPTTL": {"request": without_word("set", "keepttl")},
    "EXPIRE takes GT for LT": {"request": swap_word("expire", "gt", "lt")},
    "ZRANGEBYSCORE includes an open end": {"request": close_limit},
    "a null array is a null bulk": {"reply": other_null},
}


# --- runs --------------------------------------------------------------------

class Difference(Exception):
    pass


def explain(seed, number, commands, ours, theirs, at):
    lines = [f"seed {seed}, sequence {number}: answers differ"]
    for words in commands[:at + 1]:
        lines.append("  " + " ".join(map(repr, words)))
    lines += [f"weft store:   {ours[at]}", f"redis-server: {theirs[at]}"]
    return "\n".join(lines)


def run_sequence(store, redis, seed, number):
    """Run one sequence.  Raises Difference."""
    draw = random.Random(f"{seed} {number}")
    commands = [["FLUSHALL"]] + make_sequence(draw)
    protocol = ["HELLO", 2 + number % 2]
    for connection in (store, redis):
        connection.ask(*protocol)
    ours, theirs = talk(store, commands), talk(redis, commands)
    at = first_difference(commands, ours, theirs)
    if at is not None:
        raise Difference(explain(seed, number, commands, ours, theirs, at))
    return len(commands)


def play(path, steps, protocol, tracks):
    """Run a session.  Returns everything that each of the two clients has received."""
    clients, third = [Connection(path), Connection(path)], Connection(path)
    ids = [client.ask("CLIENT", "ID")[1] for client in clients]
    for client in clients:
        client.ask("HELLO", protocol)
    if tracks:
        clients[0].ask("CLIENT", "TRACKING", "ON")
    for who, words in steps:
        clients[who].send([words])
        third.ask("PING")  # its reply shows that all earlier commands were executed
    for _ in steps:  # each may be blocked
        for number in ids:
            third.ask("CLIENT", "UNBLOCK", number)
            third.ask("PING")
    heard = []
    for client in clients:
        client.send([["QUIT"]])
        heard.append(client.read_all())
        client.close()
    third.close()
    return heard


def run_session(paths, seed, number):
    draw = random.Random(f"{seed} session {number}")
    steps, protocol = make_session(draw), 2 + number % 2
    tracks = protocol == 3 and draw.random() < 0.5
    ours, theirs = (play(path, steps, protocol, tracks) for path in paths)
    if ours != theirs:
        lines = [f"seed {seed}, session {number}, RESP{protocol}, tracking {tracks}: differ"]
        lines += [f"  {who}: {' '.join(map(repr, words))}" for who, words in steps]
        for who in (0, 1):
            for a, b in itertools.zip_longest(ours[who], theirs[who]):
                lines.append(f"{who} weft store: {a}, redis-server: {b}" + "  <--" * (a != b))
        raise Difference("\n".join(lines))


def run_raw(paths, data):
    """Send raw bytes and half-close; compare everything that the servers reply."""
    heard = []
    for path in paths:
        connection = Connection(path)
        connection.socket.sendall(data)
        connection.socket.shutdown(socket.SHUT_WR)
        heard.append(connection.file.read())
        connection.close()
    if heard[0] != heard[1]:
        raise Difference(f"{data[:200]!r}:\nweft store:   {heard[0]!r}\nredis-server: {heard[1]!r}")


def run_plant(name, store_path, redis_path, seed):
    planted = Planted(Connection(store_path), **PLANTS[name])
    redis = Connection(redis_path)
    for number in range(PLANTS_TRIED):
        try:
            run_sequence(planted, redis, seed, number)
        except Difference:
            print(f"planted: {name}: found in sequence {number}")
            return True
    print(f"planted: {name}: not found in {PLANTS_TRIED} sequences")
    return False


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("--sequences", type=int, default=2000)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--all", action="store_true", help="go on after a difference")
    parser.add_argument("--seed", default=os.environ.get("WEFT_SEED")
                        or str(random.SystemRandom().getrandbits(32)))
    options = parser.parse_args()
    print(f"seed {options.seed}", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        redis = start_redis(folder)
        store = start_store(options.program, folder)
        try:
            a, b = Connection(store.path), Connection(redis.path)
            said, missed = 0, 0
            for number in range(options.first, options.first + options.sequences):
                try:
                    said += run_sequence(a, b, options.seed, number)
                except Difference as difference:
                    if not options.all:
                        raise
                    missed += 1
                    print("\n".join(str(difference).split("\n")[-3:]))
            print(f"{options.sequences} sequences, {said} commands: "
                  + (f"{missed} differ" if missed else "the same answers"))
            for data in RAW:
                run_raw((store.path, redis.path), data)
            sessions = options.sequences // 4
            for number in range(sessions):
                run_session((store.path, redis.path), options.seed, number)
            print(f"{sessions} sessions of two clients: the same answers")
            found = [run_plant(name, store.path, redis.path, options.seed) for name in PLANTS]
        except Difference as difference:
            sys.exit(str(difference))
        finally:
            status = store.stop()
            redis.stop()
    if status != 0:
        sys.exit(f"the store ended with {status}")
    sys.exit(0 if all(found) and not missed else 1)


if __name__ == "__main__":
    main()
