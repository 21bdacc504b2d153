// A client in plain Node: ACP over the stdio of a child.
import { spawn } from "node:child_process";
import { createInterface } from "node:readline";

export class Client {
  constructor([command, ...args], stderr = "inherit") {
    this.process = spawn(command, args, { stdio: ["pipe", "pipe", stderr] });
    this.waiting = new Map();
    this.titles = new Map();
    this.heard = [];
    this.lastId = 0;
    createInterface({ input: this.process.stdout }).on("line", (line) => this.take(JSON.parse(line)));
  }

  take(message) {
    if (message.id !== undefined && message.method === undefined) {
      const { resolve, reject } = this.waiting.get(message.id);
      this.waiting.delete(message.id);
      message.error ? reject(new Error(message.error.message)) : resolve(message.result);
      return;
    }
    this.heard.push(message);
    const update = message.params.update;
    if (update?.sessionUpdate === "session_info_update") this.titles.set(message.params.sessionId, update.title);
  }

  request(method, params) {
    const id = ++this.lastId;
    this.process.stdin.write(JSON.stringify({ jsonrpc: "2.0", id, method, params }) + "\n");
    return new Promise((resolve, reject) => this.waiting.set(id, { resolve, reject }));
  }

  introduce() {
    return this.request("initialize", { protocolVersion: 1, clientInfo: { name: "node", version: "1.0" } });
  }

  async close() {
    const gone = new Promise((resolve) => this.process.once("exit", resolve));
    this.process.stdin.end();
    return await gone;
  }
}
