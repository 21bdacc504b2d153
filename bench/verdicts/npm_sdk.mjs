// A small client made with the official npm SDK, for bench/clients.py: node npm_sdk.mjs MODULES stdio|ws|http TARGET...
// It does what a right client does as far as the SDK lets it; every wait has an end.
import { spawn } from "node:child_process";
import { createRequire } from "node:module";
import { Readable, Writable } from "node:stream";
import { pathToFileURL } from "node:url";

const [modules, over, ...target] = process.argv.slice(2);
const require = createRequire(`${modules}/x.js`);
const load = (name) => import(pathToFileURL(require.resolve(name)).href);
const acp = await load("@agentclientprotocol/sdk");

const PATIENCE = 2000;
const cwd = "/home/dev/project";
const later = (ms) => new Promise((resolve) => setTimeout(resolve, ms, undefined));
const attempt = (work) => Promise.race([Promise.resolve(work).catch(() => undefined), later(PATIENCE)]);

let child;
async function connect() {
  if (over === "ws") {
    const { createWebSocketStream } = await load("@agentclientprotocol/sdk/experimental/ws-client");
    const { WebSocket } = await load("ws");
    return createWebSocketStream(target[0], { WebSocket });
  }
  if (over === "http") {
    const { createHttpStream } = await load("@agentclientprotocol/sdk/experimental/http-client");
    return createHttpStream(target[0]);
  }
  child = spawn(target[0], target.slice(1), { stdio: ["pipe", "pipe", "ignore"] });
  child.stdin.on("error", () => {});
  return acp.ndJsonStream(Writable.toWeb(child.stdin), Readable.toWeb(child.stdout));
}

let cancelled = false;
const { client: asked, agent: to } = acp.methods;
const app = acp
  .client({ name: "polite" })
  .onNotification(asked.session.update, () => {})
  .onRequest(asked.session.requestPermission, ({ params }) =>
    cancelled || params.options.length === 0
      ? { outcome: { outcome: "cancelled" } }
      : { outcome: { outcome: "selected", optionId: params.options[0].optionId } },
  )
  .onRequest(asked.fs.readTextFile, ({ params }) => {
    const lines = ["one\n", "two\n"].slice(Math.max((params.line ?? 1) - 1, 0));
    return { content: (params.limit == null ? lines : lines.slice(0, params.limit)).join("") };
  })
  .onRequest(asked.fs.writeTextFile, () => ({}));

async function live(agent) {
  const hello = await attempt(
    agent.request(to.initialize, {
      protocolVersion: acp.PROTOCOL_VERSION,
      clientCapabilities: { fs: { readTextFile: true, writeTextFile: true } },
      clientInfo: { name: "polite", version: "1.0.0" },
    }),
  );
  if (hello?.protocolVersion !== 1) return;
  const can = hello.agentCapabilities ?? {};
  const params = { cwd, mcpServers: [] };
  let made = await attempt(agent.request(to.session.new, params));
  if (!made && hello.authMethods?.length) {
    await attempt(agent.request(to.authenticate, { methodId: hello.authMethods[0].id }));
    made = await attempt(agent.request(to.session.new, params));
  }
  if (!made) return;
  const { sessionId } = made;
  for (const text of ["hi", "go"]) {
    const turn = agent.request(to.session.prompt, { sessionId, prompt: [{ type: "text", text }] });
    if (!(await attempt(turn.then(() => true, () => true)))) {
      cancelled = true;
      await attempt(agent.notify(to.session.cancel, { sessionId }));
      await attempt(turn);
      cancelled = false;
    }
  }
  if (can.sessionCapabilities?.list) {
    let page = await attempt(agent.request(to.session.list, {}));
    for (let n = 0; n < 5 && page?.nextCursor; n++) {
      page = await attempt(agent.request(to.session.list, { cursor: page.nextCursor }));
    }
  }
  if (can.loadSession) await attempt(agent.request(to.session.load, { ...params, sessionId }));
  if (can.sessionCapabilities?.close) await attempt(agent.request(to.session.close, { sessionId }));
}

process.on("unhandledRejection", () => {});
const ended = (async () => app.connectWith(await connect(), live))().catch(() => {});
await Promise.race([ended, later(30000)]);
if (child) {
  child.stdin.end();
  await Promise.race([new Promise((resolve) => child.on("close", resolve)), later(3000)]);
}
process.exit();
