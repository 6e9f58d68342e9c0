// @ts-check
/**
 * Records what a program puts into a model's context, through `ctxctl record --events`.
 *
 * No call throws or waits: it takes a copy, and batches go out behind the program's back, in order.  What could
 * not be delivered is counted, and told in the trace as soon as it can be.  Secrets are replaced by the receiver
 * before anything is written, which is why the address must be of this machine.
 */

const ADDRESS = "http://127.0.0.1:4318/v1/events";
const BATCH_LINES = 500;
const BATCH_BYTES = 4 << 20;
const FIRST_DELAY = 100;
const LAST_DELAY = 5000;
const LOOPBACK = new Set(["127.0.0.1", "localhost", "[::1]"]);

/**
 * @typedef {Record<string, unknown>} Fields
 * @typedef {object} Options
 * @property {string} [url] Of the receiver; else the environment's CTXCTL_EVENTS, else port 4318.
 * @property {string} [session] Id of the session; else one of its own.
 * @property {string} [thread] Thread of what names none: `main`.
 * @property {number} [delay] Milliseconds that a batch waits for company: 50.
 * @property {number} [timeout] Milliseconds that the receiver may take for a batch: 10 000.
 * @property {number} [maxBytes] Of what waits to be sent; what does not fit is dropped and counted: 16 MiB.
 * @property {typeof fetch} [fetch] Instead of the global one.
 * @typedef {{ id: string, text: string, bytes: number, lost: number }} Line
 */

/** The records that a client, a turn and a step can make; of the fields see docs/recording.md. */
class Records {
  /**
   * @param {string} _call
   * @param {Fields} _own
   * @param {Fields} [_fields]
   */
  _record(_call, _own, _fields) {}

  /**
   * A piece of context with its content: a text or any JSON.
   * @param {string} id
   * @param {unknown} [content]
   * @param {Fields} [fields] kind, version, title, visibility, source, tokens, priority, metadata …
   */
  item(id, content, fields) {
    this._record("item", { item_id: id, content }, fields);
  }

  /** @param {string} id @param {Fields} [fields] cause … */
  remove(id, fields) {
    this._record("remove", { item_id: id }, fields);
  }

  /** What there is to choose from. @param {Fields} [fields] surface_id, items, sources, kind … */
  surface(fields) {
    this._record("surface", {}, fields);
  }

  /**
   * What was kept, and what was left out: refs, or `[ref, reason]`.
   * @param {unknown[]} selected
   * @param {Fields} [fields] omitted, candidates, query, scores …
   */
  selection(selected, fields) {
    this._record("selection", { selected }, fields);
  }

  /** @param {Fields} fields max_tokens, reserved_tokens, actual_tokens, dropped, truncated … */
  budget(fields) {
    this._record("budget", {}, fields);
  }

  /**
   * The whole window in order: refs, `[ref, role]`, or tables with `item_refs`, `role` …
   * @param {unknown[]} blocks
   * @param {Fields} [fields] mode, model, cause …
   */
  assembly(blocks, fields) {
    this._record("assembly", { blocks }, fields);
  }

  /** The last assembly went out. @param {Fields} [fields] point, native_id, model … */
  injection(fields) {
    this._record("injection", {}, fields);
  }

  /** @param {string[]} sources @param {Fields} [fields] summary, method, trigger … */
  compaction(sources, fields) {
    this._record("compaction", { sources }, fields);
  }

  /** @param {string} question @param {Fields} [fields] missing_id, severity, status … */
  missing(question, fields) {
    this._record("missing", { question }, fields);
  }

  /** The program itself masked an item. @param {string} id @param {Fields} [fields] state, reason … */
  redaction(id, fields) {
    this._record("redaction", { item_id: id }, fields);
  }

  /** @param {Fields} fields A provider's `response`, or input_tokens, output_tokens … */
  usage(fields) {
    this._record("usage", {}, fields);
  }
}

/** Sends records to a trace. */
export class Client extends Records {
  /** @param {Options} [options] */
  constructor(options = {}) {
    super();
    const { url, session, thread, delay, timeout, maxBytes } = options ?? {};
    this.session = text(session) ?? `session-${random(12)}`;
    this.thread = text(thread) ?? "main";
    /** Events of this client that are in the trace. */
    this.written = 0;
    /** Those that are not, and will not be. */
    this.dropped = 0;
    /** Why not: how often, by reason. @type {Record<string, number>} */
    this.reasons = {};
    /** What went wrong last. @type {string | null} */
    this.error = null;

    this._fetch = options?.fetch ?? globalThis.fetch;
    this._delay = number(delay, 50);
    this._timeout = number(timeout, 10_000);
    this._maxBytes = number(maxBytes, 16 << 20);
    this._name = random(16);
    // With a session of its own, names need not be told from another process's.
    this._suffix = text(session) === undefined ? "" : `-${this._name.slice(0, 8)}`;
    this._made = 0;
    this._steps = 0;
    this._turns = 0;
    /** @type {Line[]} */
    this._queue = [];
    this._bytes = 0;
    /** @type {Record<string, number>} Dropped and not yet told in the trace. */
    this._lost = {};
    this._wait = FIRST_DELAY;
    this._failures = 0;
    this._ending = false;
    /** @type {Promise<void> | null} */
    this._sending = null;
    /** @type {any} */
    this._timer = null;
    /** @type {(() => void) | null} */
    this._wake = null;
    this._url = address(url ?? environment("CTXCTL_EVENTS") ?? ADDRESS);
    if (this._url === null) this.error = "the receiver's address is not of this machine";
    this._onExit = () => void this._end();
    try {
      globalThis.process?.once?.("beforeExit", this._onExit);
    } catch {
      // not Node
    }
  }

  // -- records -------------------------------------------------------------------------------------------

  /** An event of the trace format, as it is. @param {Fields} event event_type, data … */
  event(event) {
    this._guarded(() => {
      const id = `${this._name}-${++this._made}`;
      this._put(id, { event_id: id, time: new Date().toISOString(), session_id: this.session, ...event });
    });
  }

  /**
   * A turn: what one prompt sets off.
   * @param {Fields} [fields] turn, thread
   */
  turn(fields) {
    return new Turn(this, { turn: `turn-${++this._turns}${this._suffix}`, ...fields });
  }

  /**
   * Record the body of a request to a model; give its answer to what is returned.
   * @param {unknown} body
   * @param {Fields} [fields] dialect, url, model, turn, thread …
   */
  request(body, fields) {
    return new Turn(this, {}).request(body, fields);
  }

  /** The session is over. */
  endSession() {
    this._record("end_session", {}, { thread: undefined });
  }

  // -- delivery ------------------------------------------------------------------------------------------

  /**
   * Wait until nothing waits to be sent any more; false if something does after so many milliseconds.
   * @param {number} [timeout]
   */
  async flush(timeout = 5000) {
    try {
      const end = Date.now() + number(timeout, 5000);
      while (this._queue.length > 0 || this._sending !== null) {
        const left = end - Date.now();
        // At the program's end, a receiver that is not there is not waited for.
        if (left <= 0 || this._url === null || (this._ending && this._failures > 0)) return false;
        this._start(0);
        await Promise.race([this._sending ?? pause(10), pause(Math.min(left, 250))]);
      }
      return true;
    } catch (error) {
      this.error = said(error);
      return false;
    }
  }

  /** Flush, and count what is still there as dropped. @param {number} [timeout] */
  async close(timeout = 5000) {
    this._wake?.();
    const done = await this.flush(timeout);
    const left = this._queue.splice(0);
    this._bytes = 0;
    const lost = left.reduce((sum, line) => sum + line.lost, 0);
    if (lost > 0) this._drop(this._failures > 0 ? this.error ?? "closed" : "closed", lost);
    this._url = null;
    try {
      globalThis.process?.removeListener?.("beforeExit", this._onExit);
    } catch {
      // not Node
    }
    return done;
  }

  // -- inside --------------------------------------------------------------------------------------------

  /** The program is about to end. */
  async _end() {
    this._ending = true;
    await this.close(2000);
    if (this.dropped === 0) return;
    const why = Object.entries(this.reasons).map(([reason, n]) => `${reason} ${n}`).join(", ");
    const all = this.written + this.dropped;
    try {
      globalThis.process?.stderr?.write?.(`ctxctl: ${this.dropped} of ${all} events are not in the trace (${why})\n`);
    } catch {
      // nobody to tell
    }
  }

  /**
   * @param {string} call
   * @param {Fields} own
   * @param {Fields | undefined} fields
   */
  _record(call, own, fields) {
    this._guarded(() => {
      const id = `${this._name}-${++this._made}`;
      this._put(id, { session: this.session, thread: this.thread, ...own, ...fields, call, id });
    });
  }

  /** @param {() => void} work */
  _guarded(work) {
    try {
      work();
    } catch (error) {
      this._drop(`${error instanceof Error ? error.name : "Error"} in a call`);
    }
  }

  /** @param {string} id @param {Fields} line @param {number} [lost] How many events are lost with it. */
  _put(id, line, lost = 1) {
    const made = encoded(line);
    const bytes = made.length * 2; // as it is held; more than will be sent, mostly
    if (this._url === null) {
      this._drop("no receiver");
    } else if (this._bytes + bytes > this._maxBytes) {
      this._drop("too much is waiting");
    } else {
      this._queue.push({ id, text: made, bytes, lost });
      this._bytes += bytes;
      this._start(this._delay);
    }
  }

  /** @param {string} reason @param {number} [count] */
  _drop(reason, count = 1) {
    this.dropped += count;
    this.reasons[reason] = (this.reasons[reason] ?? 0) + count;
    this._lost[reason] = (this._lost[reason] ?? 0) + count;
    this.error = reason;
  }

  /** @param {number} delay */
  _start(delay) {
    if (this._sending !== null) return;
    if (delay > 0) {
      if (this._timer === null) {
        this._timer = setTimeout(() => this._start(0), delay);
        this._timer?.unref?.();
      }
      return;
    }
    clearTimeout(this._timer);
    this._timer = null;
    this._sending = this._send()
      .catch((error) => {
        this.error = said(error);
      })
      .finally(() => {
        this._sending = null;
        if (this._queue.length > 0) this._start(this._delay);
      });
  }

  /** Send what waits, a batch at a time; returns when nothing does, or after a while without success. */
  async _send() {
    while (this._queue.length > 0 && this._url !== null) {
      this._tellLosses();
      const batch = this._batch();
      const wait = await this._post(batch);
      if (wait === 0) {
        this._wait = FIRST_DELAY;
        continue;
      }
      const delay = wait ?? this._wait;
      this._wait = Math.min(this._wait * 2, LAST_DELAY);
      await this._pause(delay);
    }
  }

  /** @param {number} delay */
  _pause(delay) {
    return new Promise((resolve) => {
      const done = () => {
        clearTimeout(timer);
        this._wake = null;
        resolve(undefined);
      };
      const timer = setTimeout(done, delay);
      // A receiver that is not there must not keep the program from ending.
      /** @type {any} */ (timer)?.unref?.();
      this._wake = done;
    });
  }

  /** What was dropped is told in front of what comes next. */
  _tellLosses() {
    const n = Object.values(this._lost).reduce((sum, one) => sum + one, 0);
    if (n === 0) return;
    const id = `${this._name}-${++this._made}`;
    const data = { n, reasons: this._lost };
    const told = { event_type: "ctxctl.record.dropped", event_id: id, session_id: this.session, data };
    const line = encoded(told);
    this._lost = {};
    this._queue.unshift({ id, text: line, bytes: line.length * 2, lost: 0 });
    this._bytes += line.length * 2;
  }

  _batch() {
    let size = 0;
    let end = 0;
    for (const line of this._queue) {
      if (end > 0 && (end >= BATCH_LINES || size + line.bytes > BATCH_BYTES)) break;
      size += line.bytes;
      end += 1;
    }
    return this._queue.slice(0, end);
  }

  /**
   * Post a batch.  0: the receiver has answered for it; else milliseconds after which to try what is left, null
   * for one's own guess.
   * @param {Line[]} batch
   * @returns {Promise<number | null>}
   */
  async _post(batch) {
    let status, answer, retry;
    try {
      const response = await this._fetch(/** @type {string} */ (this._url), {
        method: "POST",
        headers: { "Content-Type": "application/x-ndjson" },
        body: batch.map((line) => line.text + "\n").join(""),
        redirect: "error",
        signal: AbortSignal.timeout(this._timeout),
      });
      status = response.status;
      retry = Number(response.headers.get("Retry-After"));
      answer = await response.json().catch(() => ({}));
    } catch (error) {
      this._failures += 1;
      this.error = said(error);
      return null;
    }
    this._failures = 0;
    const failed = number(answer.failed, 0);
    if (status === 200 || status === 422) {
      this._settle(batch, failed);
      if (failed > 0) this.error = String(answer.errors?.[0]?.error ?? "refused");
      return 0;
    }
    this.error = String(answer.error ?? `status ${status}`);
    if (status === 503 || status === 408 || status === 429) {
      if (answer.next > 1) this._settle(batch.slice(0, answer.next - 1), failed);
      return retry > 0 ? Math.min(retry * 1000, 30_000) : null;
    }
    if (status === 413 && batch.length > 1) {
      // Too much at once, however that came about: the first alone, the others after it.
      return this._post(batch.slice(0, 1));
    }
    this._settle(batch, batch.length);
    return 0;
  }

  /**
   * These need not be sent again.
   * @param {Line[]} batch
   * @param {number} failed How many of them the receiver has refused.
   */
  _settle(batch, failed) {
    this._queue.splice(0, batch.length);
    for (const line of batch) this._bytes -= line.bytes;
    const ours = batch.filter((line) => line.lost > 0).length;
    const refused = Math.min(failed, ours);
    this.written += ours - refused;
    if (refused > 0) this._drop("refused by the receiver", refused);
  }
}

/** A turn; what is recorded by it belongs to it. */
export class Turn extends Records {
  /** @param {Client} client @param {Fields} place */
  constructor(client, place) {
    super();
    this._client = client;
    this._place = place;
  }

  /**
   * @param {string} call
   * @param {Fields} own
   * @param {Fields} [fields]
   */
  _record(call, own, fields) {
    this._client._record(call, own, { ...this._place, ...fields });
  }

  /**
   * As `Client.request`.
   * @param {unknown} body
   * @param {Fields} [fields]
   */
  request(body, fields) {
    const step = `step-${++this._client._steps}${this._client._suffix}`;
    const place = { ...this._place, step, ...pick(fields) };
    this._client._record("request", { body }, { ...fields, ...place });
    return new Step(this._client, place);
  }
}

/** One request to a model. */
export class Step extends Turn {
  /** The answer: what it bills, and what it adds to the conversation. @param {unknown} body */
  response(body) {
    this._record("response", { body });
  }

  /** There was no answer.  Of an error only the type is kept: its text may hold anything. @param {unknown} error */
  failed(error) {
    const told = typeof error === "string" ? error : text(/** @type {any} */ (error)?.name) ?? "Error";
    this._record("failed", { error: told });
  }
}

/** @param {Fields | undefined} fields */
function pick(fields) {
  /** @type {Fields} */
  const made = {};
  for (const name of ["session", "thread", "turn", "step"]) {
    if (fields?.[name] !== undefined) made[name] = fields[name];
  }
  return made;
}

/** JSON of anything: what JSON cannot hold says its type. @param {unknown} value */
function encoded(value) {
  try {
    return JSON.stringify(value);
  } catch {
    return JSON.stringify(tamed(value, new Set(), 0));
  }
}

/** @param {any} value @param {Set<object>} above @param {number} depth @returns {unknown} */
function tamed(value, above, depth) {
  if (typeof value === "bigint") {
    return value.toString().length < 16 ? Number(value) : { "ctxctl.stub": "int", value: value.toString() };
  }
  if (typeof value !== "object" || value === null) return value;
  if (above.has(value)) return { "ctxctl.stub": "cycle" };
  if (depth > 90) return { "ctxctl.stub": "too deep" };
  above.add(value);
  try {
    if (typeof value.toJSON === "function") return tamed(value.toJSON(), above, depth + 1);
    if (Array.isArray(value)) return value.map((one) => tamed(one, above, depth + 1));
    /** @type {Fields} */
    const made = {};
    for (const name of Object.keys(value)) made[name] = tamed(value[name], above, depth + 1);
    return made;
  } catch {
    return { "ctxctl.stub": "unreadable" };
  } finally {
    above.delete(value);
  }
}

/** @param {unknown} url */
function address(url) {
  try {
    const made = new URL(String(url));
    return made.protocol === "http:" && LOOPBACK.has(made.hostname) ? made.href : null;
  } catch {
    return null;
  }
}

/** @param {string} name */
function environment(name) {
  try {
    return globalThis.process?.env?.[name] || undefined;
  } catch {
    return undefined;
  }
}

/** @param {number} digits */
function random(digits) {
  let made = "";
  while (made.length < digits) made += Math.floor(Math.random() * 0x10000000).toString(16).padStart(7, "0");
  return made.slice(0, digits);
}

/** @param {unknown} value */
function text(value) {
  return typeof value === "string" && value !== "" ? value : undefined;
}

/** @param {unknown} value @param {number} otherwise */
function number(value, otherwise) {
  return typeof value === "number" && Number.isFinite(value) && value >= 0 ? value : otherwise;
}

/** @param {unknown} error */
function said(error) {
  const { cause, name } = /** @type {any} */ (error) ?? {};
  return String(cause?.code ?? cause?.message ?? name ?? "Error").slice(0, 80);
}

/** @param {number} delay */
function pause(delay) {
  return new Promise((resolve) => setTimeout(resolve, delay));
}
