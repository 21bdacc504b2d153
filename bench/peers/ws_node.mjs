// The npm package `ws` and nothing else. Arguments: number of chunks, folder of node_modules.
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";

const [chunks, modules] = [Number(process.argv[2]), process.argv[3]];
const { WebSocketServer } = createRequire(pathToFileURL(modules + "/"))("ws");
const chunk =
  '{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":' +
  '"agent_message_chunk","messageId":"m","content":{"type":"text","text":"word "}}}}';

const server = new WebSocketServer({ host: "127.0.0.1", port: 0, perMessageDeflate: false });
server.on("listening", () => console.error(`listening on http://127.0.0.1:${server.address().port}`));
server.on("connection", (socket) => {
  socket.on("message", (data) => {
    const { id, method } = JSON.parse(data.toString());
    const answer = (result) => socket.send(JSON.stringify({ jsonrpc: "2.0", id, result }));
    if (method === "initialize") answer({ protocolVersion: 1 });
    if (method === "session/new") answer({ sessionId: "s" });
    if (method === "session/prompt") {
      for (let i = 0; i < chunks; i++) socket.send(chunk);
      answer({ stopReason: "end_turn" });
    }
  });
});
