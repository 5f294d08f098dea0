"""The control port: how another process scripts a fake and asks what happened. POST /<call> with the arguments as a JSON object; 200 with JSON, or 400
with {"error": …}. The calls are those of `Fake.remote_calls`; `remote.py` is the other side."""

import asyncio
import inspect
import json

from .web import Answer


def plain(value):
    """Effects and requests as JSON."""
    if isinstance(value, list):
        return [plain(part) for part in value]
    return value.as_json() if hasattr(value, "as_json") else value


async def perform(fake, name, arguments):
    if name not in fake.remote_calls:
        raise ValueError(f"there is no call {name!r}")
    patient = getattr(fake, name + "_", None)  # in the loop itself, the variant that does not wait for the loop
    result = patient(**arguments) if patient else getattr(fake, name)(**arguments)
    return plain(await result if inspect.isawaitable(result) else result)


async def serve_control(fake, port):
    async def serve(reader, writer):
        try:
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                lines = head.decode("latin-1").lower().split("\r\n")
                size = next((int(line.partition(":")[2]) for line in lines if line.startswith("content-length:")), 0)
                body = await reader.readexactly(size)
                try:
                    answer = Answer(200, {"result": await perform(fake, head.split(b" ")[1].decode().strip("/"), json.loads(body or b"{}"))})
                except (ValueError, TypeError, KeyError) as wrong:
                    answer = Answer(400, {"error": str(wrong)})
                writer.write(answer.head(close=False) + answer.body)
                await writer.drain()
        except (ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass
        finally:
            writer.close()

    return await asyncio.start_server(serve, "127.0.0.1", port, limit=1 << 20)
