// Records what a sanqian context provider gives.
//
//     ctxctl record --events -o run.jsonl
//     node sanqian_provider.mjs
//
// Outside of this repository: from "ctxctl" and "ctxctl/sanqian".

import { Client } from "../../clients/js/ctxctl.js";
import { contextProvider } from "../../clients/js/sanqian.js";

class EditorState {
  id = "editor-state";
  name = "Editor";
  #note = "Open note: plans for the spring";

  async getCurrent() {
    return { content: this.#note };
  }

  async getList({ limit }) {
    return { items: [{ id: "note-1", title: "Plans" }].slice(0, limit), hasMore: false };
  }

  async getById(id) {
    return id === "note-1" ? { id, title: "Plans", content: "note-1, 400 words", type: "note" } : null;
  }
}

const ctx = new Client();
const editor = contextProvider(ctx, new EditorState(), { app: "notes" });
// sdk = new SanqianSDK({ appName: "notes", contexts: [editor], … });

await editor.getCurrent();
await editor.getList({ limit: 10 });
await editor.getById("note-1");
await editor.getById("note-2");
await ctx.close();
