"""A proxy for TCP that breaks connections on purpose: after so many bytes in one direction it closes, half-closes or resets, and it can delay.
One thread for all connections. What to do with a connection is asked of `plan()` when it is accepted."""

import asyncio
import random
import socket
import struct
import threading

FOREVER = 1 << 60


class Fault:
    """Let `request` bytes through to the server and `response` bytes back; then end both sides as `how` says: close, half or reset."""

    def __init__(self, request=FOREVER, response=FOREVER, how="close", delay=0.0):
        self.request, self.response, self.how, self.delay = request, response, how, delay


def reset_on_close(sock):
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


class FaultProxy:
    def __init__(self, port, plan):
        self.target, self.plan, self.port = port, plan, None
        self.connections = self.faults = 0
        self.loop = asyncio.new_event_loop()
        ready = threading.Event()
        self.thread = threading.Thread(target=self._run, args=(ready,), daemon=True)
        self.thread.start()
        ready.wait(120)

    def _run(self, ready):
        asyncio.set_event_loop(self.loop)
        self.server = self.loop.run_until_complete(asyncio.start_server(self._serve, "127.0.0.1", 0))
        self.port = self.server.sockets[0].getsockname()[1]
        ready.set()
        self.loop.run_forever()

    async def _serve(self, client_in, client_out):
        self.connections += 1
        fault = self.plan()
        try:
            server_in, server_out = await asyncio.open_connection("127.0.0.1", self.target)
        except OSError:
            client_out.transport.abort()
            return
        for out in (client_out, server_out):
            out.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        requests = asyncio.ensure_future(self._pump(client_in, server_out, fault.request, fault))
        responses = asyncio.ensure_future(self._pump(server_in, client_out, fault.response, fault))
        done, _ = await asyncio.wait((requests, responses), return_when=asyncio.FIRST_COMPLETED)
        broke = any(task.result() for task in done)
        if not broke:
            broke = any(await asyncio.gather(requests, responses))
        if broke:
            self.faults += 1
            await self._end(fault, requests, responses, client_out, server_out)
        for out in (client_out, server_out):
            out.close()

    async def _end(self, fault, requests, responses, client_out, server_out):
        if fault.how == "half" and fault.request < FOREVER:
            try:
                server_out.write_eof()  # the server still gets to say what it thinks of this
                await asyncio.wait_for(responses, 60)
            except (OSError, asyncio.TimeoutError):
                pass
        for task in (requests, responses):
            task.cancel()
        if fault.how == "reset":
            for out in (client_out, server_out):
                reset_on_close(out.get_extra_info("socket"))
                out.transport.abort()

    async def _pump(self, source, sink, allowed, fault):
        """True when the fault is due: there was more to say than is let through, so with none allowed the other side has still been heard."""
        try:
            while True:
                block = await source.read(65536)
                if not block:
                    if sink.can_write_eof():
                        sink.write_eof()
                    return False
                if fault.delay:
                    await asyncio.sleep(random.uniform(0, fault.delay))
                sink.write(block[:allowed])
                await sink.drain()
                allowed -= len(block)
                if allowed <= 0:
                    return True
        except OSError:
            return False

    def close(self):
        async def stop():
            self.server.close()
            others = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
            for task in others:
                task.cancel()
            await asyncio.gather(*others, return_exceptions=True)
            self.loop.call_soon(self.loop.stop)

        asyncio.run_coroutine_threadsafe(stop(), self.loop)
        self.thread.join(120)
