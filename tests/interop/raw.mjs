// The plain `ws` client, frame by frame: node raw.mjs URL
import { WebSocket } from "ws";

const socket = new WebSocket(process.argv[2]);
const seen = [];
const headers = {};
let pongs = 0;
let binary = 0;

function send(message, asBinary = false) {
  const text = JSON.stringify({ jsonrpc: "2.0", ...message });
  socket.send(asBinary ? Buffer.from(text + "\n") : text);
}

socket.on("upgrade", (reply) => Object.assign(headers, reply.headers));
socket.on("pong", () => pongs++);
socket.on("open", () => {
  socket.ping();
  send({ id: 0, method: "initialize", params: { protocolVersion: 1 } }, true); // some clients send binary frames
});
socket.on("message", (data, isBinary) => {
  if (isBinary) binary++;
  const message = JSON.parse(data.toString());
  seen.push(message);
  if (message.id === 0 && message.result) {
    send({ id: 1, method: "session/new", params: { cwd: "/home/dev/project", mcpServers: [] } });
  } else if (message.id === 1 && message.result) {
    const prompt = [{ type: "text", text: "go" }];
    send({ id: 2, method: "session/prompt", params: { sessionId: message.result.sessionId, prompt } });
  } else if (message.method === "session/request_permission") {
    const optionId = message.params.options[0].optionId;
    send({ id: message.id, result: { outcome: { outcome: "selected", optionId } } });
  } else if (message.id === 2 && message.result) {
    socket.close(1000, "done");
  }
});
socket.on("close", (code) => {
  const kinds = seen.map((message) => message.params?.update?.sessionUpdate ?? message.method ?? "reply");
  console.log(JSON.stringify({ code, kinds, pongs, binary, connection: headers["acp-connection-id"] }));
});
