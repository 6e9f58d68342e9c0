// Records a session of a JavaScript program.
//
//     ctxctl record --events -o run.jsonl
//     node javascript_session.mjs
//
// Outside of this repository: import { Client } from "ctxctl".

import { Client } from "../../clients/js/ctxctl.js";

const ctx = new Client();
const turn = ctx.turn();
turn.item("faq#11", "Blue light is scattered more than red light.", { kind: "retrieval_result" });
turn.selection(["faq#11"], { omitted: [["faq#12", "low_relevance"]] });

const messages = [
  { role: "system", content: "You answer in one sentence." },
  { role: "user", content: "Why is the sky blue?" },
];
const step = turn.request({ model: "gpt-5", messages });
// const answer = await openai.chat.completions.create({ model: "gpt-5", messages });
const answer = {
  object: "chat.completion",
  choices: [{ message: { role: "assistant", content: "Air scatters blue light more." } }],
  usage: { prompt_tokens: 24, completion_tokens: 7 },
};
step.response(answer);

await ctx.close();
