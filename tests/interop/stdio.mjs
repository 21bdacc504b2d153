// The official npm SDK over stdio: node stdio.mjs COMMAND ARGS...
import { spawn } from "node:child_process";
import { Readable, Writable } from "node:stream";
import * as acp from "@agentclientprotocol/sdk";
import { converse } from "./conversation.mjs";

const [command, ...args] = process.argv.slice(2);
const child = spawn(command, args, { stdio: ["pipe", "pipe", "inherit"] });
const ended = new Promise((resolve) => child.on("close", resolve));
const happened = await converse(acp.ndJsonStream(Writable.toWeb(child.stdin), Readable.toWeb(child.stdout)));
child.stdin.end();
console.log(JSON.stringify({ ...happened, status: await ended }));
