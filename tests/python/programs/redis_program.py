"""redis-py's asyncio client, over a Unix socket and over TLS, with a real server."""
import asyncio

import redis.asyncio as redis

from scene import PATIENCE, bytes_of, digest

BIG = bytes_of(750_000).hex()


async def commands(client):
    seen = [await client.set("a", "1"), await client.incr("a"), await client.get("a"),
            await client.get("none"), await client.set("big", BIG),
            digest((await client.get("big")).encode())]
    await client.hset("h", mapping={"x": "1", "y": "2"})
    await client.rpush("l", *range(100))
    seen += [await client.hgetall("h"), await client.lrange("l", -3, -1)]
    await client.mset({f"key:{n}": n for n in range(300)})
    seen.append(len([key async for key in client.scan_iter("key:*", count=20)]))
    return seen


async def pipeline(client):
    async with client.pipeline(transaction=False) as pipe:
        for n in range(2000):
            pipe.set(f"p{n}", "x" * (n % 50))
            pipe.strlen(f"p{n}")
        replies = await pipe.execute()
    return [len(replies), sum(replies[1::2])]


async def transaction(client, other):
    """A watched key changes during the transaction."""
    seen = []
    async with client.pipeline() as pipe:
        await pipe.watch("w")
        await other.set("w", "2")
        pipe.multi()
        pipe.set("w", "3")
        try:
            await pipe.execute()
        except redis.WatchError as error:
            seen.append(type(error).__name__)
    return [*seen, await client.get("w")]


async def publish(client):
    heard = []
    async with client.pubsub() as listener:
        await listener.subscribe("news")
        heard.append((await listener.get_message(timeout=PATIENCE))["type"])
        for n in range(50):
            await client.publish("news", f"{n} " + "x" * (n * 100))
        while len(heard) < 51:
            message = await listener.get_message(ignore_subscribe_messages=True, timeout=PATIENCE)
            heard.append(digest(message["data"].encode()))
        await listener.unsubscribe("news")
    return heard


async def block(client):
    """One client waits for an element, another adds it."""
    waiter = asyncio.ensure_future(client.blpop(["queue"], timeout=PATIENCE))
    while not await blocked(client):
        await asyncio.sleep(0)
    await client.rpush("queue", "at last")
    return [await waiter, await client.blpop(["nothing"], timeout=1)]


async def blocked(client):
    return (await client.info("clients"))["blocked_clients"]


async def give_up(client):
    """A canceled wait does not break later commands."""
    seen = []
    try:
        await asyncio.wait_for(client.blpop(["nothing"], timeout=30), 0.2)
    except asyncio.TimeoutError as error:
        seen.append(type(error).__name__)
    return [*seen, await client.ping()]


async def stream(client):
    for n in range(20):
        await client.xadd("s", {"n": n})
    [[name, entries]] = await client.xread({"s": "0"}, count=100)
    return [name, [fields for _, fields in entries]]


async def be_killed(client):
    """The server ends the connection; the next command gets a new one.

    The command in between may fail, over a Unix socket also with AttributeError: redis-py
    4.3 reads the host of the connection for its message, on any loop.
    """
    seen, mine = [], await client.client_id()
    await client.client_kill_filter(_id=mine, skipme=False)
    for _ in range(2):
        try:
            seen.append(await client.ping())
        except (redis.ConnectionError, AttributeError) as error:
            seen.append(type(error).__name__)
    return seen[-1]


async def many(client, count):
    """`count` commands at once, each with its own connection; over TLS, redis-py loads
    the system's certificates for each connection."""
    await asyncio.gather(*(client.incr("count") for _ in range(count)))
    return await client.get("count")


async def talk(scene, make, count):
    client, other = make(), make()
    await scene.attempt("flush", client.flushall())
    await scene.attempt("commands", commands(client))
    await scene.attempt("pipeline", pipeline(client))
    await scene.attempt("transaction", transaction(client, other))
    await scene.attempt("publish", publish(client))
    await scene.attempt("block", block(client))
    await scene.attempt("give up", give_up(client))
    await scene.attempt("stream", stream(client))
    await scene.fail("error", client.lpush("a", "not a list"))
    await scene.attempt("many", many(client, count))
    await scene.attempt("killed", be_killed(client))
    for each in (client, other):
        await each.close()
        await each.connection_pool.disconnect()


async def main(scene):
    scene.note("Unix")
    await talk(scene, lambda: redis.Redis(
        unix_socket_path=scene.world["redis_socket"], decode_responses=True), 500)
    scene.note("TLS")
    await talk(scene, lambda: redis.Redis(
        host="localhost", port=scene.world["redis_tls_port"], ssl=True,
        ssl_ca_certs=scene.world["chain"], decode_responses=True), 100)
    stranger = redis.Redis(host="localhost", port=scene.world["redis_tls_port"], ssl=True)
    await scene.fail("distrust", stranger.ping())
    await stranger.connection_pool.disconnect()
