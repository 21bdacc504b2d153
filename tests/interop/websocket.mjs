// The official npm SDK over WebSocket: node websocket.mjs URL
import { createWebSocketStream } from "@agentclientprotocol/sdk/experimental/ws-client";
import { WebSocket } from "ws";
import { converse } from "./conversation.mjs";

const happened = await converse(createWebSocketStream(process.argv[2], { WebSocket }));
console.log(JSON.stringify(happened));
process.exit();
