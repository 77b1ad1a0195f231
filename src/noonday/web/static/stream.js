// ONE stream of events per browser: the tab that holds the lock reads it and tells the others. Used by live.js.
// @ts-check

/** @typedef {{id?: string, type: string, time?: string, subject?: string | null, data?: any}} Told */

const STREAM = "/api/events";
const NAME = "noonday-live";
const SILENCE = 40_000; // ms without a sign of life; the server gives one every 15 s
const TOPICS = {
  job: "jobs", execution: "executions", executions: "executions", breaker: "breakers",
  instance: "instances", leader: "instances", engine: "instances", service: "services", output: "output",
};

/** @type {Set<{topics: Set<string>, heard: (event: Told) => void}>} */
const listeners = new Set();
const channel = "BroadcastChannel" in globalThis ? new BroadcastChannel(NAME) : null;
let last = ""; // the number of the newest event that any tab told
let alive = Date.now(); // when any tab last had a sign of life
let state = "connecting";
let changed = () => {};

/** @param {string} type */
export function topicOf(type) {
  const word = type.replace(/^noonday\./, "").split(".")[0];
  return /** @type {Record<string, string>} */ (TOPICS)[word] ?? "";
}

/**
 * @param {string[]} topics
 * @param {(event: Told) => void} heard
 */
export function listen(topics, heard) {
  const listener = { topics: new Set(topics), heard };
  listeners.add(listener);
  return () => listeners.delete(listener);
}

export function isOn() {
  return localStorage.getItem(NAME) !== "off";
}

/** @param {boolean} on */
export function switchLive(on) {
  localStorage.setItem(NAME, on ? "on" : "off");
  changed();
  if (on) tell({ type: "resync" });
}

/** connecting, live, reconnecting, off; out = signed out */
export function stateNow() {
  return isOn() ? state : "off";
}

/** @param {() => void} then called whenever the state has changed */
export function onState(then) {
  changed = then;
}

/** @param {Told} event */
function tell(event) {
  if (!isOn()) return;
  const topic = topicOf(event.type);
  for (const one of listeners) if (event.type === "resync" || one.topics.has(topic)) one.heard(event);
}

/** @param {{kind: string, state?: string, event?: Told, last?: string}} message */
function everywhere(message) {
  channel?.postMessage(message);
  received(message);
}

/** @param {{kind: string, state?: string, event?: Told, last?: string}} message */
function received(message) {
  if (message.kind === "hello") {
    if (leads) channel?.postMessage({ kind: "state", state, last });
    return;
  }
  alive = Date.now();
  last = message.last || last;
  if (message.state) enter(message.state);
  if (message.event) tell(message.event);
}

/** What happened before the stream began, or while it was cut, was not told: read again then.
 * @param {string} next */
function enter(next) {
  const begins = next === "live" && state !== "live";
  state = next;
  changed();
  if (begins) tell({ type: "resync" });
}

let leads = false;

/** Read the stream until `signal`, again and again; each time on from the last event that was heard.
 * @param {AbortSignal} signal */
async function read(signal) {
  for (let tries = 0; !signal.aborted; tries++) {
    const attempt = new AbortController();
    const watch = setInterval(() => Date.now() - heardAt > SILENCE && attempt.abort(), 5_000);
    let heardAt = Date.now();
    try {
      const from = last ? `?last_event_id=${last}` : "";
      const answer = await fetch(STREAM + from, { signal: AbortSignal.any([signal, attempt.signal]) });
      if (answer.status === 401 || answer.status === 403) return everywhere({ kind: "state", state: "out" });
      if (!answer.ok || !answer.body) throw new Error(`${answer.status}`);
      everywhere({ kind: "state", state: "live" });
      const lines = answer.body.pipeThrough(new TextDecoderStream()).getReader();
      for (let rest = ""; ; ) {
        const { value, done } = await lines.read();
        if (done) break;
        heardAt = Date.now();
        tries = 0;
        const parts = (rest + value).split("\n\n");
        rest = parts.pop() ?? "";
        for (const part of parts) bring(part);
        everywhere({ kind: "beat", last });
      }
    } catch {
      // cut off: come again below
    } finally {
      clearInterval(watch);
    }
    if (signal.aborted) return;
    everywhere({ kind: "state", state: "reconnecting" });
    await new Promise((go) => setTimeout(go, Math.min(1_000 * 2 ** tries, 15_000) * (0.5 + Math.random() / 2)));
  }
}

/** @param {string} part one event as it is on the wire */
function bring(part) {
  let data = "";
  for (const line of part.split("\n")) {
    if (line.startsWith("id:")) last = line.slice(3).trim();
    if (line.startsWith("data:")) data += line.slice(5).trim();
  }
  if (data) everywhere({ kind: "event", event: JSON.parse(data), last });
}

/** Wait for the lock, lead while it is ours; with `steal`, take it from a tab that fell asleep.
 * @param {boolean} [steal] */
async function follow(steal = false) {
  const end = new AbortController();
  let robbed = false;
  try {
    await navigator.locks.request(NAME, steal ? { steal } : {}, async () => {
      leads = true;
      addEventListener("pagehide", () => end.abort(), { once: true });
      await read(end.signal);
    });
  } catch {
    robbed = true; // by a tab that did not hear us: we slept
    end.abort();
  }
  leads = false;
  if (robbed) void follow();
}

/** Without locks (plain http on another address) each tab that is looked at reads for itself. */
function alone() {
  let end = new AbortController();
  const look = () => {
    end.abort();
    end = new AbortController();
    if (document.visibilityState === "visible") void read(end.signal);
  };
  document.addEventListener("visibilitychange", look);
  addEventListener("pagehide", () => end.abort());
  look();
}

function woken() {
  if (document.visibilityState !== "visible" || state === "out") return;
  if (!leads && Date.now() - alive > SILENCE && "locks" in navigator) {
    enter("reconnecting");
    alive = Date.now();
    void follow(true);
  }
}

/** Take part: lead, or hear from the tab that does. */
export function begin() {
  channel?.addEventListener("message", (event) => received(event.data));
  channel?.postMessage({ kind: "hello" });
  document.addEventListener("visibilitychange", woken);
  addEventListener("storage", (event) => event.key === NAME && changed());
  setInterval(woken, 10_000);
  if ("locks" in navigator) void follow();
  else alone();
  addEventListener("pageshow", (event) => {
    if (!event.persisted) return; // kept by the browser and shown again
    tell({ type: "resync" });
    if ("locks" in navigator) void follow();
  });
}
