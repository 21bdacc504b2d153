// A client made with the official npm SDK which says what happens to it, for bench/released.py:
// node npm_sdk.mjs MODULES PLAN stdio|ws|http TARGET...
// It does the same as python_sdk.py beside it, which says what the plans are and what is written down.
import { spawn } from "node:child_process";
import { createRequire } from "node:module";
import { Readable, Writable } from "node:stream";
import { pathToFileURL } from "node:url";

const [modules, plan, over, ...target] = process.argv.slice(2);
const require = createRequire(`${modules}/x.js`);
const load = (name) => import(pathToFileURL(require.resolve(name)).href);
const acp = await load("@agentclientprotocol/sdk");

const PATIENCE = 2000;
const START = 5000;
const BREATH = 100;
const PAGES = 30;
const CWD = "/home/dev/project";
const later = (ms) => new Promise((resolve) => setTimeout(resolve, ms, "late"));
const note = (what) => process.stdout.write(`${JSON.stringify({ at: Date.now() / 1000, ...what })}\n`);

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

function signal() {
  const made = { set: false };
  made.wait = new Promise((resolve) => (made.fire = () => ((made.set = true), resolve())));
  return made;
}

let holds = plan === "cancel";
const known = new Set();
let news = signal();
let cancelled = signal();
const { client: asked, agent: to } = acp.methods;
const app = acp
  .client({ name: "outcomes" })
  .onNotification(asked.session.update, ({ params: { sessionId, update } }) => {
    news.fire();
    if (update.sessionUpdate === "agent_message_chunk" && update.content.type === "text") {
      note({ said: update.content.text, session: sessionId });
    }
  })
  .onRequest(asked.session.requestPermission, async ({ params }) => {
    news.fire();
    if (holds) await cancelled.wait;
    if (cancelled.set || params.options.length === 0 || !known.has(params.sessionId)) {
      return { outcome: { outcome: "cancelled" } };
    }
    const wanted = plan === "deny" ? "reject" : "";
    const option = params.options.find(({ kind }) => kind.startsWith(wanted)) ?? params.options[0];
    return { outcome: { outcome: "selected", optionId: option.optionId } };
  })
  .onRequest(asked.fs.readTextFile, ({ params }) => {
    const lines = ["one\n", "two\n"].slice(Math.max((params.line ?? 1) - 1, 0));
    return { content: (params.limit == null ? lines : lines.slice(0, params.limit)).join("") };
  })
  .onRequest(asked.fs.writeTextFile, () => ({}));

const words = (error) =>
  `${error?.name ?? "Error"}: ${error?.message ?? error}${error?.data ? ` ${JSON.stringify(error.data)}` : ""}`.slice(0, 300);

/** Follows a call from now on, so that an early failure is no unhandled one. */
const watched = (work) => Promise.resolve(work).then((result) => ({ result: result ?? {} }), (error) => ({ error }));

/** What comes of a call; undefined for an error, and for nothing in time. */
async function settle(method, seen, patience = PATIENCE) {
  const got = await Promise.race([seen, later(patience)]);
  if (got === "late") note({ call: method, end: "pending" });
  else if (got.error !== undefined) note({ call: method, end: "error", why: words(got.error) });
  else note({ call: method, end: "ok" });
  return got.result;
}

const call = (method, work, patience) => settle(method, watched(work), patience);
const calls = async (method, works) => {
  const seen = works.map(watched);
  const got = [];
  for (const one of seen) got.push(await settle(method, one));
  return got;
};

async function turn(agent, sessionId, text) {
  news = signal();
  const seen = watched(agent.request(to.session.prompt, { sessionId, prompt: [{ type: "text", text }] }));
  const first = holds ? Promise.race([news.wait.then(() => "late"), later(PATIENCE / 2)]) : later(PATIENCE);
  if ((await Promise.race([seen, first])) === "late") {
    cancelled.fire();
    await call("session/cancel", agent.notify(to.session.cancel, { sessionId }));
  }
  await settle("session/prompt", seen);
  holds = false;
  cancelled = signal();
  await later(BREATH);
}

async function pages(agent) {
  const rows = new Map();
  let cursor;
  for (let n = 0; n < PAGES; n++) {
    const page = await call("session/list", agent.request(to.session.list, cursor ? { cursor } : {}));
    const before = rows.size;
    for (const row of page?.sessions ?? []) rows.set(row.sessionId, row);
    if (!page?.nextCursor || rows.size === before) break;
    cursor = page.nextCursor;
  }
  return [...rows.values()];
}

async function live(agent) {
  const hello = await call(
    "initialize",
    agent.request(to.initialize, {
      protocolVersion: acp.PROTOCOL_VERSION,
      clientCapabilities: { fs: { readTextFile: true, writeTextFile: true } },
      clientInfo: { name: "outcomes", version: "1.0.0" },
    }),
    START,
  );
  if (!hello) return;
  if (hello.protocolVersion !== 1) return note({ refused: `protocol version ${hello.protocolVersion}` });
  const can = hello.agentCapabilities ?? {};
  const more = can.sessionCapabilities ?? {};
  const twice = plan === "pairs" ? [1, 2] : [1];
  const fresh = { cwd: CWD, mcpServers: [] };
  const make = async () => (await calls("session/new", twice.map(() => agent.request(to.session.new, fresh))))[0];
  let made = await make();
  if (!made && hello.authMethods?.length) {
    await call("authenticate", agent.request(to.authenticate, { methodId: hello.authMethods[0].id }));
    made = await make();
  }
  if (!made) return;
  known.add(made.sessionId);
  for (const text of ["hi", "go"]) await turn(agent, made.sessionId, text);
  const stored = more.list ? await pages(agent) : [];
  const chosen = stored.find((row) => row.sessionId !== made.sessionId);
  const cwd = chosen?.cwd?.startsWith("/") ? chosen.cwd : CWD;
  const old = { sessionId: chosen?.sessionId ?? made.sessionId, cwd, mcpServers: [] };
  known.add(old.sessionId);
  if (can.loadSession) {
    const loaded = await calls("session/load", twice.map(() => agent.request(to.session.load, old)));
    if (loaded.some(Boolean) || (await call("session/load", agent.request(to.session.load, old)))) {
      await turn(agent, old.sessionId, "again");
    }
  }
  const { sessionId } = old;
  if (more.close) await call("session/close", agent.request(to.session.close, { sessionId }));
  if (more.resume) await call("session/resume", agent.request(to.session.resume, old));
  if (more.delete) await call("session/delete", agent.request(to.session.delete, { sessionId }));
}

process.on("unhandledRejection", (error) => note({ noise: words(error) }));
try {
  await app.connectWith(await connect(), live);
} catch (error) {
  note({ call: "connection", end: "error", why: words(error) });
}
if (child) {
  note({ left: child.exitCode ?? child.signalCode });
  child.stdin.end();
  const closed = new Promise((resolve) => child.on("close", resolve));
  if (child.exitCode === null && child.signalCode === null) await Promise.race([closed, later(1000)]);
  child.kill("SIGKILL");
}
note({ end: true });
process.exit();
