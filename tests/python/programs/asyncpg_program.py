"""asyncpg with a real PostgreSQL: over a Unix socket, and over TCP with STARTTLS."""
import asyncio
import datetime
import decimal
import io

import asyncpg

from scene import bytes_of, digest

BIG = bytes_of(2_000_000)


async def values(link):
    row = await link.fetchrow(
        "SELECT 1::int8 AS a, 'grüße' AS b, $1::bytea AS c, $2::numeric AS d, $3::date AS e,"
        " ARRAY[1, NULL, 3] AS f, $4::interval AS g", BIG, decimal.Decimal("1.50"),
        datetime.date(2026, 1, 2), datetime.timedelta(days=3, seconds=4))
    seen = [digest(value) if isinstance(value, bytes) else repr(value) for value in row.values()]
    rows = await link.fetch("SELECT n, repeat('x', n % 100) AS x FROM generate_series(1, 20000) n")
    return [*seen, len(rows), sum(len(r["x"]) for r in rows)]


async def statements(link):
    await link.execute("CREATE TEMP TABLE t (id int PRIMARY KEY, name text)")
    await link.executemany("INSERT INTO t VALUES ($1, $2)", [(n, f"n{n}") for n in range(1000)])
    statement = await link.prepare("SELECT name FROM t WHERE id = $1")
    seen = [await statement.fetchval(n) for n in (0, 500, 999, 1000)]
    try:
        await link.execute("INSERT INTO t VALUES (1, 'again')")
    except asyncpg.UniqueViolationError as error:
        seen.append([type(error).__name__, error.sqlstate, error.constraint_name])
    return [*seen, str(statement.get_parameters()[0].name)]


async def transactions(link):
    seen = []
    try:
        async with link.transaction():
            await link.execute("DELETE FROM t")
            seen.append(await link.fetchval("SELECT count(*) FROM t"))
            async with link.transaction():
                await link.execute("INSERT INTO t VALUES (1, 'one')")
            raise LookupError("undo it")
    except LookupError as error:
        seen.append(str(error))
    seen.append(await link.fetchval("SELECT count(*) FROM t"))
    async with link.transaction():
        names = [row["name"] async for row in link.cursor(
            "SELECT name FROM t ORDER BY id", prefetch=37)]
    return [*seen, len(names), names[-1]]


async def copy(link):
    """Bulk data in each direction."""
    rows = [(n, "y" * (n % 300)) for n in range(5000)]
    await link.execute("CREATE TEMP TABLE c (n int, y text)")
    seen = [await link.copy_records_to_table("c", records=rows)]
    out = io.BytesIO()
    seen.append(await link.copy_from_query("SELECT * FROM c ORDER BY n", output=out))
    seen.append(digest(out.getvalue()))
    out.seek(0)
    return [*seen, await link.copy_to_table("c", source=out)]


async def listen(link, other):
    heard, all_heard = [], asyncio.Event()

    def on_notice(_link, _pid, channel, payload):
        heard.append([channel, payload])
        if len(heard) == 20:
            all_heard.set()

    await link.add_listener("news", on_notice)
    for n in range(20):
        await other.execute(f"NOTIFY news, '{n}'")
    await all_heard.wait()
    await link.remove_listener("news", on_notice)
    return heard


async def await_sleep(other, pid):
    """Wait until the server runs the query of that session."""
    query = "SELECT count(*) FROM pg_stat_activity WHERE pid = $1 AND wait_event = 'PgSleep'"
    while not await other.fetchval(query, pid):
        pass


async def give_up(link, other):
    """asyncpg cancels a query that takes too long at the server, over a separate
    connection.

    A task that is canceled while it waits for the end of an earlier cancellation would
    cancel that one, too.  So each query runs at the server before it is canceled.
    """
    seen = []
    try:
        await link.fetch("SELECT pg_sleep(60)", timeout=0.3)
    except asyncio.TimeoutError as error:
        seen.append(type(error).__name__)
    seen.append(await link.fetchval("SELECT 6"))
    task = asyncio.ensure_future(link.fetch("SELECT pg_sleep(60)"))
    await await_sleep(other, link.get_server_pid())
    task.cancel()
    await asyncio.wait([task])
    return [*seen, task.cancelled(), await link.fetchval("SELECT 7")]


async def pool(connect):
    async with asyncpg.create_pool(min_size=2, max_size=8, **connect) as links:
        async def one(n):
            async with links.acquire() as link:
                return await link.fetchval("SELECT $1::int * 2", n)
        doubled = await asyncio.gather(*(one(n) for n in range(100)))
    return sum(doubled)


async def be_ended(link, other):
    """The server ends a waiting session."""
    gone = asyncio.Event()
    link.add_termination_listener(lambda _link: gone.set())
    await other.execute("SELECT pg_terminate_backend($1)", link.get_server_pid())
    await gone.wait()
    seen = [link.is_closed()]
    try:
        await link.fetchval("SELECT 1")
    except (asyncpg.InterfaceError, asyncpg.PostgresError, OSError) as error:
        seen.append(type(error).__name__)
    return seen


async def talk(scene, connect):
    link, other = await asyncpg.connect(**connect), await asyncpg.connect(**connect)
    used = await link.fetchval("SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()")
    scene.note("encrypted", used)
    await scene.attempt("values", values(link))
    await scene.attempt("statements", statements(link))
    await scene.attempt("transactions", transactions(link))
    await scene.attempt("copy", copy(link))
    await scene.attempt("listen", listen(link, other))
    await scene.attempt("give up", give_up(link, other))
    await scene.attempt("pool", pool(connect))
    await scene.attempt("ended", be_ended(link, other))
    await scene.attempt("close", other.close())


async def main(scene):
    who = {"user": "weft", "database": "postgres"}
    scene.note("Unix")
    await talk(scene, {**who, "host": scene.world["postgres_socket"],
                       "port": scene.world["postgres_port"]})
    scene.note("TLS")
    where = {**who, "host": "localhost", "port": scene.world["postgres_port"]}
    await talk(scene, {**where, "ssl": scene.tls_client()})
    await scene.fail("distrust", asyncpg.connect(**where, ssl="verify-full"))
    await scene.fail("no such user", asyncpg.connect(
        **{**where, "user": "nobody", "ssl": scene.tls_client()}))
