// ONE stream of events per browser: the tab that holds the lock reads it and tells the others. Used by live.js.
//
// The page says up to which event it knows everything (`data-position`); the stream is read on from there. A tab that
// hears of an event knows from `before` whether it missed one, and then reads again what it shows.
// @ts-check

import { keep, kept } from "./kept.js";

/** @typedef {{id?: string, type: string, time?: string, subject?: string | null, data?: any}} Told */
/** @typedef {{kind: "hello" | "state" | "part", state?: string, event?: Told, before?: string, last?: string}} Message */

const STREAM = "/api/events";
const NAME = "noonday-live";
const SILENCE = 40_000; // ms without a sign of life; the server gives one every 15 s
const POLL = 15_000; // ms between looks where the server keeps no events
const TOPICS = {
  job: "jobs", execution: "executions", executions: "executions", breaker: "breakers",
  instance: "instances", leader: "instances", engine: "instances", service: "services", output: "output",
};

/** @type {Set<{topics: Set<string>, heard: (event: Told) => void}>} */
const listeners = new Set();
const shared = "locks" in navigator && "BroadcastChannel" in globalThis; // not on plain http from another host
const channel = shared ? new BroadcastChannel(NAME) : null;
let last = document.documentElement.dataset.position ?? ""; // all up to this event is on the page, or was told
let alive = Date.now(); // when any tab last had a sign of life
let state = "connecting";
let leads = false;
let changed = () => {};
let hurry = () => {};

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
  return kept(NAME) !== "off";
}

/** @param {boolean} on */
export function switchLive(on) {
  keep(NAME, on ? "on" : "off");
  switched();
}

function switched() {
  changed();
  tell({ type: "resync" });
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

/** @param {string} next */
function enter(next) {
  state = next;
  changed();
}

/** @param {Message} message */
function everywhere(message) {
  channel?.postMessage(message);
  received(message);
}

/** @param {Message} message */
function received(message) {
  if (message.kind === "hello") {
    if (leads) channel?.postMessage({ kind: "state", state, before: last, last });
    return;
  }
  alive = Date.now();
  const missed = Number(message.before) > Number(last);
  last = message.last ?? last;
  if (message.state) enter(message.state);
  if (missed) tell({ type: "resync" });
  else if (message.event) tell(message.event);
}

/** Read the stream until `signal`, again and again; each time on from the last event that was heard.
 * @param {AbortSignal} signal */
async function read(signal) {
  for (let tries = 0; !signal.aborted; tries++) {
    const attempt = new AbortController();
    let heardAt = Date.now();
    const watch = setInterval(() => Date.now() - heardAt > SILENCE && attempt.abort(), 5_000);
    try {
      const answer = await fetch(`${STREAM}?last_event_id=${last}`, { signal: AbortSignal.any([signal, attempt.signal]) });
      if (answer.status === 401 || answer.status === 403) return everywhere({ kind: "state", state: "out" });
      if (!answer.ok || !answer.body) throw new Error(`${answer.status}`);
      everywhere({ kind: "state", state: "live", before: last, last });
      const lines = answer.body.pipeThrough(new TextDecoderStream()).getReader();
      for (let rest = ""; ; ) {
        const { value, done } = await lines.read();
        if (done) break;
        heardAt = Date.now();
        tries = 0;
        const parts = (rest + value).split("\n\n");
        rest = parts.pop() ?? "";
        for (const part of parts) bring(part);
      }
    } catch {
      // cut off: come again below
    } finally {
      clearInterval(watch);
    }
    if (signal.aborted) return;
    everywhere({ kind: "state", state: "reconnecting" });
    await pause(Math.min(1_000 * 2 ** tries, 15_000) * (0.5 + Math.random() / 2));
  }
}

/** @param {string} part an event or a sign of life, as it is on the wire */
function bring(part) {
  let [id, data] = [last, ""];
  for (const line of part.split("\n")) {
    if (line.startsWith("id:")) id = line.slice(3).trim();
    if (line.startsWith("data:")) data += line.slice(5).trim();
  }
  everywhere({ kind: "part", event: data ? JSON.parse(data) : undefined, before: last, last: id });
}

/** @param {number} ms or less, if the reader or the network comes back
 * @returns {Promise<void>} */
function pause(ms) {
  return new Promise((go) => {
    setTimeout(go, ms);
    hurry = go;
  });
}

/** Wait for the lock, lead while it is ours; with `steal`, take it from a tab that fell asleep.
 * @param {boolean} [steal] */
async function follow(steal = false) {
  const end = new AbortController();
  addEventListener("pagehide", () => end.abort(), { once: true });
  channel?.postMessage({ kind: "hello" });
  try {
    await navigator.locks.request(NAME, steal ? { steal } : { signal: end.signal }, async () => {
      leads = true;
      await read(end.signal);
    });
    leads = false;
  } catch {
    leads = false;
    if (end.signal.aborted) return;
    end.abort(); // robbed by a tab that did not hear us: we slept
    void follow();
  }
}

/** Each tab that is looked at reads for itself. */
function alone() {
  let end = new AbortController();
  const look = () => {
    end.abort();
    end = new AbortController();
    if (document.visibilityState === "visible") void read(end.signal);
  };
  document.addEventListener("visibilitychange", look);
  addEventListener("pagehide", () => end.abort());
  return look;
}

function woken() {
  if (document.visibilityState !== "visible" || state === "out") return;
  hurry();
  if (shared && !leads && Date.now() - alive > SILENCE) {
    enter("reconnecting");
    alive = Date.now();
    void follow(true);
  }
}

/** Take part: lead, or hear from the tab that does. */
export function begin() {
  addEventListener("storage", (event) => event.key === NAME && switched());
  if (!last) {
    enter("live");
    setInterval(() => tell({ type: "resync" }), POLL);
    return;
  }
  channel?.addEventListener("message", (event) => received(event.data));
  const again = shared ? () => void follow() : alone();
  again();
  document.addEventListener("visibilitychange", woken);
  addEventListener("online", woken);
  setInterval(woken, 10_000);
  addEventListener("pageshow", (event) => event.persisted && again()); // kept by the browser and shown again
}
