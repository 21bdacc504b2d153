// The official npm SDK over Streamable HTTP: node http.mjs URL
import { createHttpStream } from "@agentclientprotocol/sdk/experimental/http-client";
import { converse } from "./conversation.mjs";

const happened = await converse(createHttpStream(process.argv[2]));
console.log(JSON.stringify(happened));
process.exit();
