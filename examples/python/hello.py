import asyncio, weft

async def main():
    print("hello", await asyncio.sleep(0.1, "weft"))

weft.run(main())
