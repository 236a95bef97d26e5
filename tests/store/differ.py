#!/usr/bin/env python3
"""Send the same commands to `weft store` and to redis-server, and compare the replies.

    tests/store/differ.py PROGRAM [--sequences N] [--seed S]

Each sequence is about thirty random commands after FLUSHALL, in RESP2 or RESP3.  The replies must
be equal byte for byte, except for the order of unordered elements, for times, and for the texts of
some errors: see same_error().  The same holds for sessions in which two clients take turns, get
messages because of each other and wait for each other, and for malformed requests.  Then some
mistakes are injected between this program and the store, one at a time.  Each of them must be
found.
"""
import argparse
import fcntl
import itertools
import os
import random
import socket
import struct
import sys
import tempfile
import termios

sys.dont_write_bytecode = True
from commands import RAW, make_sequence, make_session, release
from servers import Connection, Reply, start_redis, start_store

PLANTS_TRIED = 4000  # sequences within which an injected mistake must be found

SORTED = {"smembers", "keys", "hkeys", "hvals"}
PAIRS = {"hgetall"}
NEAR = {"ttl": 30, "pttl": 30000}


# --- allowed differences -----------------------------------------------------

GENERAL = (b"ERR syntax error", b"ERR value is not an integer or out of range",
           b"ERR timeout is not a float or out of range", b"ERR unknown subcommand",
           b"ERR increment or decrement would overflow", b"ERR Invalid stream ID specified")


def in_pairs(values):
    return [tuple(values[i:i + 2]) for i in range(0, len(values), 2)]


def plain(words, reply):
    """A reply in a comparable form: unordered elements are sorted."""
    name, kind, value = words[0].lower(), *reply
    if kind not in ("array", "set", "map"):
        return reply
    if kind == "map" or name in PAIRS:
        return Reply(kind, sorted(in_pairs(value)))
    if name == "xpending" and value and value[0][0] == "array":
        return Reply(kind, [[*entry[:2], *entry[3:]] for _, entry in value])
    return Reply(kind, sorted(value)) if name in SORTED else reply


def same_error(ours, theirs):
    """The code of an error must be the same.  The text of the store may be the beginning of that
    of redis-server, or a more general one.  If a command has several errors, either may be
    reported: the store checks the type of the key first."""
    if b"WRONGTYPE" in (ours[:9], theirs[:9]):
        return True
    return ours.split()[0] == theirs.split()[0] and (theirs.startswith(ours)
                                                     or ours.startswith(GENERAL))


def same(words, ours, theirs):
    name = words[0].lower()
    if name in NEAR and ours[0] == theirs[0] == "integer" and min(ours[1], theirs[1]) > 0:
        return abs(ours[1] - theirs[1]) <= NEAR[name]
    if ours[0] == theirs[0] == "error":
        return same_error(ours[1], theirs[1])
    return plain(words, ours) == plain(words, theirs)


def first_difference(commands, ours, theirs):
    """The index of the first reply that differs, or None."""
    for i, (words, a, b) in enumerate(zip(commands, ours, theirs)):
        if not same(words, a, b):
            return i
    return None


# --- requests and replies ----------------------------------------------------

def talk(connection, commands):
    """The replies to commands, which are sent together."""
    connection.send(commands)
    return [connection.read() for _ in commands]


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
    "LTRIM trims by one more": {"request": swap_word("ltrim", "1", "2")},
    "SET forgets KEEPTTL": {"request": without_word("set", "keepttl")},
    "XTRIM trims by one more": {"request": swap_word("xtrim", "2", "1")},
    "XREADGROUP forgets NOACK": {"request": without_word("xreadgroup", "noack")},
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


def let_others_run(third):
    """The store may read the next request of a client before it lets other clients continue, if
    that request is there at once.  It does not come at once so many times."""
    for _ in range(4):
        third.ask("PING")


def wait_until_executed(client, third):
    """A server may read the PING of `third` before it reads an earlier request of `client`.  So
    wait until it has read that request, and then until it has executed it."""
    unread = True
    while unread:
        third.ask("PING")
        unread = struct.unpack("i", fcntl.ioctl(client.socket, termios.TIOCOUTQ, b"\0" * 4))[0]
    let_others_run(third)


def play(path, steps, protocol):
    """Run a session.  Returns everything that each of the two clients has received."""
    clients, third = [Connection(path), Connection(path)], Connection(path)
    for client in clients:
        client.ask("HELLO", protocol)
    for number, words in steps:
        clients[number].send([words])
        wait_until_executed(clients[number], third)
    for number in range(len(steps)):  # each may be blocked
        for words in release(number):
            third.ask(*words)
            let_others_run(third)
    received = []
    for client in clients:
        client.send([["QUIT"]])
        received.append(client.read_all())
        client.close()
    third.close()
    return received


def same_replies(ours, theirs):
    return len(ours) == len(theirs) and all(same(["session"], a, b) for a, b in zip(ours, theirs))


def run_session(paths, seed, number):
    draw = random.Random(f"{seed} session {number}")
    steps, protocol = make_session(draw), 2 + number % 2
    ours, theirs = (play(path, steps, protocol) for path in paths)
    if not all(map(same_replies, ours, theirs)):
        lines = [f"seed {seed}, session {number}, RESP{protocol}: differ"]
        lines += [f"  {client}: {' '.join(map(repr, words))}" for client, words in steps]
        for client in (0, 1):
            for a, b in itertools.zip_longest(ours[client], theirs[client]):
                lines.append(f"{client} weft store: {a}, redis-server: {b}" + "  <--" * (a != b))
        raise Difference("\n".join(lines))


def run_raw(paths, data):
    """Send raw bytes and half-close; compare everything that the servers reply."""
    received = []
    for path in paths:
        connection = Connection(path)
        connection.socket.sendall(data)
        connection.socket.shutdown(socket.SHUT_WR)
        received.append(connection.read_all())
        connection.close()
    if not same_replies(*received):
        raise Difference(f"{data[:200]!r}:\nweft store:   {received[0]}\n"
                         f"redis-server: {received[1]}")


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
            compared, missed = 0, 0
            for number in range(options.first, options.first + options.sequences):
                try:
                    compared += run_sequence(a, b, options.seed, number)
                except Difference as difference:
                    if not options.all:
                        raise
                    missed += 1
                    print("\n".join(str(difference).split("\n")[-3:]))
            print(f"{options.sequences} sequences, {compared} commands: "
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
