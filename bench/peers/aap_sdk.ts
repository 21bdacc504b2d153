// The server of AAP's own TypeScript SDK, with an agent that says so many words. It is not on npm, and is run in
// `packages/server` of a checkout of github.com/agentapplicationprotocol/typescript-sdk: `tsx aap_sdk.ts PORT CHUNKS`.

import { serve } from "@hono/node-server";
import { Hono } from "hono";
import { aap } from "./src/server.js";

const [port, chunks] = process.argv.slice(2).map(Number);
const session = { toSessionInfo: () => ({ sessionId: "s", agent: { name: "peer" } }) };

const handler = {
  getMeta: () => ({ agents: [{ name: "peer", version: "1.0.0" }] }),
  getSession: async () => session,
  postSessionTurnStreamDelta: async (_session: unknown, _request: unknown, onEvent: (event: object) => unknown) => {
    onEvent({ event: "turn_start" });
    for (let index = 0; index < chunks; index++) await onEvent({ event: "text_delta", delta: "word " });
    await onEvent({ event: "turn_stop", stopReason: "end_turn" });
  },
};

const app = new Hono();
app.route("/", aap(handler as never));
serve({ fetch: app.fetch, port, hostname: "127.0.0.1" });
