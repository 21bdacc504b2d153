// What both programs with the official npm SDK have in common: a client that keeps what it hears, and one conversation.
import * as acp from "@agentclientprotocol/sdk";

const { session } = acp.methods.agent;

/** Holds a conversation over a stream and returns what happened, for the Python side to judge. */
export async function converse(stream) {
  const heard = [];
  const asked = [];
  const answers = ["allow", "reject"];
  const app = acp
    .client({ name: "interop" })
    .onNotification(acp.methods.client.session.update, ({ params }) => heard.push(params))
    .onRequest(acp.methods.client.session.requestPermission, ({ params }) => {
      asked.push(params.toolCall.title);
      return { outcome: { outcome: "selected", optionId: answers[asked.length - 1] } };
    });
  return await app.connectWith(stream, async (agent) => {
    const hello = await agent.request(acp.methods.agent.initialize, {
      protocolVersion: acp.PROTOCOL_VERSION,
      clientInfo: { name: "interop", version: "1" },
    });
    const made = await agent.request(session.new, { cwd: "/home/dev/project", mcpServers: [] });
    const { sessionId } = made;
    const play = async (text) =>
      (await agent.request(session.prompt, { sessionId, prompt: [{ type: "text", text }] })).stopReason;
    const stops = [await play("change it"), await play("again")];
    const listed = (await agent.request(session.list, {})).sessions.map((row) => row.sessionId);
    const missing = await agent
      .request(session.load, { sessionId: "nobody", cwd: "/home/dev/project", mcpServers: [] })
      .then(() => null, (error) => error.code);
    await agent.request(session.close, { sessionId });
    heard.length = 0;
    await agent.request(session.load, { sessionId, cwd: "/home/dev/project", mcpServers: [] });
    // Over HTTP the replay and the reply take two streams: wait for its last word.
    const kinds = () => heard.map(({ update }) => update.sessionUpdate);
    for (let tries = 0; tries < 500 && kinds().filter((kind) => kind === "tool_call").length < asked.length; tries++)
      await new Promise((resolve) => setTimeout(resolve, 10));
    const replayed = kinds();
    const held = agent.request(session.prompt, { sessionId, prompt: [{ type: "text", text: "hang" }] });
    await agent.notify(session.cancel, { sessionId });
    stops.push((await held).stopReason);
    return { version: hello.protocolVersion, sessionId, asked, stops, listed, missing, replayed };
  });
}
