// The Node client tests itself: `node --test`. The mock is started by the test and controlled over HTTP.
import assert from "node:assert/strict";
import { createInterface } from "node:readline";
import { afterEach, beforeEach, test } from "node:test";
import { Client } from "./client.mjs";

const command = JSON.parse(process.env.MOCKAGENT ?? '["mockagent"]');
let client, control;

const post = async (path, body) => {
  const reply = await fetch(control + path, { method: "POST", body: JSON.stringify(body ?? {}) });
  assert.ok(reply.ok, await reply.clone().text());
  return await reply.json();
};
const get = async (path) => await (await fetch(control + path)).json();

beforeEach(async () => {
  client = new Client([...command, "acp", "scenarios/inbox.yaml", "--control", "127.0.0.1:0"], "pipe");
  for await (const line of createInterface({ input: client.process.stderr })) {
    control = line.match(/control on (\S+)/)?.[1];
    if (control) break;
  }
  client.process.stderr.resume();
  await client.introduce();
});

afterEach(async () => {
  const report = await get("/report");
  assert.equal(await client.close(), 0);
  assert.ok(!report.failed, report.text);
});

test("a title that is pushed is shown", async () => {
  const { sessionId } = await client.request("session/new", { cwd: "/home/dev/project", mcpServers: [] });
  await post("/push", { session: sessionId, title: "Fresh" });
  await client.request("session/list", {});
  assert.equal(client.titles.get(sessionId), "Fresh");
});

test("an error in the list is told", async () => {
  await post("/faults", { at: "list", error: "internal_error", when: { times: 1 } });
  await assert.rejects(client.request("session/list", {}));
  assert.equal((await client.request("session/list", {})).sessions.length, 2);
  assert.equal((await get("/wait?for=session/list")).kind, "session/list");
});
