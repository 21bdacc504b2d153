// A minimal agent written with the official npm SDK. Arguments: number of chunks, folder of node_modules.
import { createRequire } from "node:module";
import { Readable, Writable } from "node:stream";
import { pathToFileURL } from "node:url";

const [chunks, modules] = [Number(process.argv[2]), process.argv[3]];
const require = createRequire(pathToFileURL(modules + "/"));
const acp = await import(pathToFileURL(require.resolve("@agentclientprotocol/sdk")));

const peer = acp
  .agent({ name: "peer" })
  .onRequest(acp.methods.agent.initialize, () => ({ protocolVersion: 1, agentCapabilities: {} }))
  .onRequest(acp.methods.agent.session.new, () => ({ sessionId: "s" }))
  .onRequest(acp.methods.agent.session.prompt, async ({ params, client }) => {
    for (let i = 0; i < chunks; i++) {
      await client.notify(acp.methods.client.session.update, {
        sessionId: params.sessionId,
        update: { sessionUpdate: "agent_message_chunk", content: { type: "text", text: "word " } },
      });
    }
    return { stopReason: "end_turn" };
  });

peer.connect(acp.ndJsonStream(Writable.toWeb(process.stdout), Readable.toWeb(process.stdin)));
