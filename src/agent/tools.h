/*
 * tools: `semel mcp-server`, semel's own tools for an agent, over stdio (MCP up to 2025-11-25). Each tool is one or two calls of the
 * daemon's HTTP API, with the rights of the token; what they are called, take and give is tools.json, which is tools/list as it is.
 *
 * Promises: the annotations are true; what the ledger answers is an answer, not an error; whatever the daemon refuses or cannot do
 * is `isError` with the sentence that it said.
 */
#ifndef SEMEL_AGENT_TOOLS_H
#define SEMEL_AGENT_TOOLS_H

#include "cli/cli.h"

/* Writes the structured content (a JSON object) to `out` and returns true; false with a sentence in `out`. */
bool tools_call(struct cli *cli, struct bytes tool, const struct json *arguments, struct buf *out, bool *ret_known);

#endif
