"""Lets one test speak with both clients: `both.client(…)` is a Client, or an AsyncClient that is driven to the end of each call."""

import asyncio

from semel import AsyncClient, Client, once


class Sync:
    name = "sync"

    def client(self, url=None, **settings):
        return Client(url, **settings)

    def once(self, *args, **how):
        return once(*args, **how)

    def call(self, client, method, *args, **how):
        return getattr(client, method)(*args, **how)

    def held(self, client, act, *args, **how):
        """The result of a block that acts when it is first."""
        with client.claim(*args, **how) as claim:
            if claim.first:
                claim.result = act(claim)
        return claim.result

    def together(self, count, call):
        """Runs it in several threads."""
        import concurrent.futures

        with concurrent.futures.ThreadPoolExecutor(count) as pool:
            return [future.result() for future in [pool.submit(call, n) for n in range(count)]]


class Async:
    name = "async"

    def client(self, url=None, **settings):
        return AsyncClient(url, **settings)

    def once(self, *args, **how):
        """Decorates a plain function as if it were a coroutine function, and gives it back as a plain one."""

        def decorate(function):
            import functools

            @functools.wraps(function)
            async def coroutine(*a, **k):
                return function(*a, **k)

            inner = once(*args, **how)(coroutine)
            return functools.wraps(function)(lambda *a, **k: asyncio.run(inner(*a, **k)))

        return decorate

    def call(self, client, method, *args, **how):
        return asyncio.run(getattr(client, method)(*args, **how))

    def held(self, client, act, *args, **how):
        async def main():
            async with client.claim(*args, **how) as claim:
                if claim.first:
                    claim.result = act(claim)
            return claim.result

        return asyncio.run(main())

    together = Sync.together
