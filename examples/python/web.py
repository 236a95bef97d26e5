"""An aiohttp application on weft, with weft's admin endpoint beside it."""
import asyncio
import sys

import weft
from aiohttp import web

routes = web.RouteTableDef()


@routes.get("/hello/{name}")
async def hello(request):
    return web.json_response({"hello": request.match_info["name"]})


@routes.get("/turns")
async def turns(request):
    return web.json_response({"turns": weft.metrics()["turns"]})


async def main(port):
    app = web.Application()
    app.add_routes(routes)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", port)
    await site.start()
    print("serving at", site._server.sockets[0].getsockname()[1], flush=True)
    print("admin endpoint at", weft.serve_admin(), flush=True)
    try:
        await asyncio.Event().wait()
    finally:
        await runner.cleanup()


if __name__ == "__main__":
    try:
        weft.run(main(int(sys.argv[1]) if len(sys.argv) > 1 else 8080))
    except KeyboardInterrupt:
        print("bye")
