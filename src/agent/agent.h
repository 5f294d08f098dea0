/*
 * agent: semel for agents. `semel mcp` puts the ledger in front of the tools of an MCP server (proxy.h); `semel mcp-server` gives
 * an agent semel's own tools (tools.h).
 */
#ifndef SEMEL_AGENT_AGENT_H
#define SEMEL_AGENT_AGENT_H

#include "cli/cli.h"

extern const struct cli_option mcp_options[];
int mcp_run(struct cli *cli);
int mcp_server_run(struct cli *cli);

#endif
