// @ts-check
/** Wraps a sanqian context provider: the same answers, recorded. */

const ITEM_FIELDS = ["summary", "type", "link"];

/**
 * The provider again; what `getCurrent`, `getList` and `getById` give is recorded.
 *
 * An item is named `APP:PROVIDER`, or `APP:PROVIDER/ID` where the data has an id, so that two pieces of one
 * provider are not taken for versions of one.  Without a version of its own, the content's digest is it.
 *
 * @template {object} P
 * @param {import("./ctxctl.js").Client | import("./ctxctl.js").Turn} client Where to record.
 * @param {P} provider
 * @param {{ app?: string }} [options] The app's name.
 * @returns {P}
 */
export function contextProvider(client, provider, options = {}) {
  const recorded = new Recorded(client, provider, options?.app);
  return new Proxy(provider, {
    get(target, name) {
      const found = Reflect.get(target, name, target);
      if (typeof found !== "function") return found;
      const then = recorded.listener(name);
      if (then === null) return name === "constructor" ? found : bound(found, target);
      return (/** @type {any[]} */ ...args) => {
        const result = found.apply(target, args);
        if (typeof result?.then === "function") {
          return result.then((/** @type {any} */ data) => {
            quietly(() => then(args[0], data));
            return data;
          });
        }
        quietly(() => then(args[0], result));
        return result;
      };
    },
  });
}

class Recorded {
  /** @param {any} client @param {any} provider @param {string | undefined} app */
  constructor(client, provider, app) {
    this._client = client;
    this._provider = provider;
    this._app = app;
    /** @type {Set<string>} */
    this._lacking = new Set();
  }

  /** @param {string | symbol} name @returns {((asked: any, data: any) => void) | null} */
  listener(name) {
    if (name === "getCurrent") return (_, data) => this._given(undefined, data);
    if (name === "getById") return (asked, data) => this._given(asked, data);
    if (name === "getList") return (_, data) => this._listed(data);
    return null;
  }

  get _name() {
    const id = this._provider.id;
    const name = isName(id) ? String(id) : this._provider.constructor?.name ?? "provider";
    return this._app && !name.includes(":") ? `${this._app}:${name}` : name;
  }

  /** @param {any} asked @param {any} data */
  _given(asked, data) {
    const name = this._name;
    const own = data?.id ?? (isName(asked) ? asked : undefined);
    const item = own === undefined ? name : `${name}/${own}`;
    const content = data?.content;
    if (content === undefined || content === null) {
      // Attached and empty is a fact of its own: the model is told of nothing, and nothing is removed.
      this._lacking.add(item);
      this._client.missing(`${item} gave nothing`, { missing_id: `missing-${item}`, needed_for: name });
      return;
    }
    if (this._lacking.delete(item)) {
      this._client.missing(`${item} gave nothing`, { missing_id: `missing-${item}`, status: "resolved" });
    }
    /** @type {Record<string, unknown>} */
    const metadata = { version_source: data.version ? "supplied" : "computed" };
    const told = ITEM_FIELDS.filter((field) => data[field] !== undefined && data[field] !== null);
    if (told.length > 0) metadata.native = Object.fromEntries(told.map((field) => [field, data[field]]));
    this._client.item(item, content, {
      kind: "external_resource",
      title: typeof data.title === "string" ? data.title : undefined,
      version: isName(data.version) && data.version !== "" ? String(data.version) : undefined,
      source: name,
      metadata,
    });
  }

  /** @param {any} data */
  _listed(data) {
    const rows = data?.items ?? data;
    if (!Array.isArray(rows)) return;
    const name = this._name;
    this._client.surface({
      surface_id: `list-${name}`,
      kind: "provider_list",
      sources: [name],
      items: rows.filter((row) => isName(row?.id)).map((row) => `${name}/${row.id}`),
      metadata: { count: rows.length, has_more: typeof data?.hasMore === "boolean" ? data.hasMore : null },
    });
  }
}

/** @param {unknown} value */
function isName(value) {
  return typeof value === "string" || Number.isInteger(value);
}

/** A method that finds its private fields. @param {Function} method @param {object} target */
function bound(method, target) {
  return (/** @type {any[]} */ ...args) => method.apply(target, args);
}

/** @param {() => void} work */
function quietly(work) {
  try {
    work();
  } catch {
    // the program's own call must not suffer
  }
}
