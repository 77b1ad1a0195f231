// <log-tail data-run="…" [data-attempt="2"]>: a run's output as it is written. Follows the end until somebody scrolls
// up; searches; links to lines (#L120) and to several (#L5-L9).
// @ts-check

import { isOn, listen } from "./live.js";
import { drawn } from "./log-colours.js";
import { LogLines } from "./log-lines.js";
import { LogSearch } from "./log-search.js";
import { LogText } from "./log-text.js";

/** @typedef {import("./log-text.js").Line} Line */

const LOOK = 2_000; // ms between looks that no event asked for
const WRAP = "noonday-wrap";
const NOTICES = { running: "", ended: "", reconnecting: "Connection lost. Reconnecting…", refused: "This output cannot be read any more." };

class Refused extends Error {}

/** @param {string} name
 * @param {Record<string, string>} [given]
 * @param {(Node | string)[]} inside */
function make(name, given = {}, ...inside) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(given)) made.setAttribute(key, value);
  made.append(...inside);
  return made;
}

/** @param {string} word
 * @param {Record<string, string>} given
 * @param {() => void} act */
function button(word, given, act) {
  const made = make("button", { type: "button", ...given }, word);
  made.addEventListener("click", act);
  return made;
}

class LogTail extends HTMLElement {
  #text = new LogText();
  #search = new LogSearch();
  #attempt = 0;
  #ended = false;
  #busy = false;
  #again = false;
  #tries = 0;
  #timer = 0;
  #aim = [0, 0]; // numbers of the first and the last line that the address names
  #aims = false; // they were not yet gone to
  #stop = () => {};

  #box = make("div", { class: "lines", tabindex: "0", role: "log", "aria-label": "Lines of the output", title: "A click on a number links to the line, Shift and a click to several; Enter to the first one that is shown" });
  #lines = new LogLines(this.#box, (line, place) => this.#line(line, place), () => this.#turned());
  #field = /** @type {HTMLInputElement} */ (make("input", { type: "search", placeholder: "Find in the output", "aria-label": "Find in the output", autocomplete: "off" }));
  #wrap = /** @type {HTMLInputElement} */ (make("input", { type: "checkbox" }));
  #count = make("span", { class: "none", role: "status" });
  #size = make("span");
  #notice = make("span", { role: "status" });
  #follow = button("Follow", { class: "button", title: "Stay at the end while it is written" }, () => this.#setFollow(!this.#lines.follow));
  #newest = button("", { class: "newest main", hidden: "" }, () => this.#setFollow(true));

  connectedCallback() {
    this.#attempt = Number(this.dataset.attempt ?? 0);
    this.#build();
    this.#named();
    this.#stop = listen(["output", "executions"], (event) => {
      if (event.type === "resync" || event.data?.execution_id === this.dataset.run) void this.#read();
    });
    addEventListener("hashchange", this.#named);
    document.addEventListener("visibilitychange", this.#seen);
    void this.#read();
  }

  disconnectedCallback() {
    this.#stop();
    this.#lines.close();
    clearTimeout(this.#timer);
    removeEventListener("hashchange", this.#named);
    document.removeEventListener("visibilitychange", this.#seen);
  }

  #build() {
    const file = `/ui/runs/${this.dataset.run}/output.txt` + (this.#attempt ? `?attempt=${this.#attempt}` : "");
    this.#wrap.checked = this.#lines.wrap = localStorage.getItem(WRAP) === "on";
    this.#box.classList.toggle("wrap", this.#lines.wrap);
    this.replaceChildren(
      make("div", { class: "row bench", role: "group", "aria-label": "Output" },
        this.#field, button("↑", { "aria-label": "The match before" }, () => this.#step(-1)),
        button("↓", { "aria-label": "The next match" }, () => this.#step(1)), this.#count, make("span", { class: "grow" }),
        make("label", {}, this.#wrap, " Wrap"), this.#follow, make("a", { class: "button", href: file, download: "" }, "Download")),
      make("div", { class: "view" }, this.#box, this.#newest),
      make("div", { class: "foot" }, this.#size, this.#notice),
    );
    this.#wrap.addEventListener("change", () => {
      this.#lines.wrap = this.#wrap.checked;
      localStorage.setItem(WRAP, this.#wrap.checked ? "on" : "off");
      this.#lines.lay();
    });
    this.#field.addEventListener("input", () => this.#find());
    this.#field.addEventListener("keydown", (event) => {
      if (event.key !== "Enter") return;
      event.preventDefault();
      this.#step(event.shiftKey ? -1 : 1);
    });
    this.#box.addEventListener("click", (event) => this.#choose(event));
    this.#box.addEventListener("keydown", (event) => {
      const line = this.#text.lines[this.#lines.first];
      if (event.key === "Enter" && event.target === this.#box && line?.number) location.hash = `L${line.number}`;
    });
    this.#setFollow(true);
  }

  // --- reading -----------------------------------------------------------------------------------------------

  async #read() {
    if (this.#busy) return void (this.#again = true);
    if (this.#ended) return;
    this.#busy = true;
    clearTimeout(this.#timer);
    try {
      do {
        this.#again = false;
        while (await this.#page());
      } while (this.#again && !this.#ended);
      this.#tries = 0;
      this.#say(this.#ended ? "ended" : "running");
    } catch (error) {
      this.#tries++;
      this.#say(error instanceof Refused ? "refused" : "reconnecting");
    }
    this.#busy = false;
    if (!this.#ended) this.#timer = setTimeout(() => this.#due(), this.#tries ? Math.min(500 * 2 ** this.#tries, 15_000) : LOOK);
  }

  #due() {
    if (document.visibilityState === "visible" && (isOn() || this.#tries)) void this.#read();
    else this.#timer = setTimeout(() => this.#due(), LOOK);
  }

  #seen = () => void (document.visibilityState === "visible" && this.#read());

  /** Read on; whether there is more at once. */
  async #page() {
    const which = this.#attempt ? `&attempt=${this.#attempt}` : "";
    const answer = await fetch(`/api/v2/executions/${this.dataset.run}/output?after=${this.#text.next}${which}`);
    if ([401, 403, 404].includes(answer.status)) throw new Refused();
    if (!answer.ok) throw new Error(String(answer.status));
    const found = await answer.json();
    if (!this.dataset.attempt && found.newest_attempt !== this.#attempt) {
      const anew = this.#attempt !== 0;
      this.#attempt = found.newest_attempt;
      if (anew) return this.#restart();
    }
    const before = Math.max(0, this.#text.lines.length - 1);
    const cut = this.#text.cut;
    for (const piece of found.pieces) this.#text.add(piece);
    this.#text.next = found.next;
    this.#ended = found.ended;
    this.#grown(this.#text.cut === cut ? before : 0);
    return found.more;
  }

  /** Another attempt writes now. */
  #restart() {
    this.#text = new LogText();
    this.#grown(0);
    return true;
  }

  /** @param {number} from the first line that is not as it was */
  #grown(from) {
    const lines = this.#text.lines;
    if (!from) this.#search.restart();
    this.#search.more(lines);
    this.#lines.grow(lines, from);
    if (this.#aims && (this.#text.reaches(this.#aim[0]) || this.#ended)) this.#goToAim();
    this.#turned();
  }

  /** @param {keyof NOTICES} state */
  #say(state) {
    const many = this.#text.lines.length;
    const none = this.#ended ? "Nothing was written." : "Nothing was written yet.";
    this.#size.textContent = many ? `${many.toLocaleString("en")} ${many === 1 ? "line" : "lines"}` : none;
    if (this.#notice.textContent !== NOTICES[state]) this.#notice.textContent = NOTICES[state];
    this.#notice.className = NOTICES[state] ? "lost" : "";
    this.dataset.state = state;
    this.#turned();
  }

  // --- moving ------------------------------------------------------------------------------------------------

  /** @param {boolean} on */
  #setFollow(on) {
    this.#lines.follow = on;
    if (on) this.#lines.toEnd();
    this.#turned();
  }

  /** What is heard and offered depends on whether the end is followed. */
  #turned() {
    const { follow, below } = this.#lines;
    this.#box.setAttribute("aria-live", follow && !this.#ended ? "polite" : "off");
    this.#follow.setAttribute("aria-pressed", String(follow));
    this.#follow.classList.toggle("on", follow);
    this.#follow.hidden = this.#ended;
    this.#newest.hidden = follow || !below;
    this.#newest.textContent = `Jump to newest, ${below.toLocaleString("en")} ${below === 1 ? "line" : "lines"} below`;
    this.#count.textContent = this.#search.words;
  }

  /** @param {number} place of a line */
  #goTo(place) {
    this.#lines.goTo(place);
    this.#turned();
  }

  #goToAim() {
    this.#aims = false;
    this.#goTo(this.#text.indexOf(this.#aim[0]));
  }

  #named = () => {
    const found = /^#L(\d{1,12})(?:-L(\d{1,12}))?$/.exec(location.hash);
    const ends = found ? [Number(found[1]), Number(found[2] ?? found[1])] : [0, 0];
    this.#aim = ends.sort((one, other) => one - other);
    this.#aims = this.#aim[0] > 0;
    if (this.#aims) this.#setFollow(false);
    if (this.#aims && this.#text.reaches(this.#aim[0])) this.#goToAim();
    else this.#lines.redraw();
  };

  /** A click on a number names its line; with Shift, all lines from the one named before.
   * @param {MouseEvent} event */
  #choose(event) {
    const link = event.target instanceof Element ? event.target.closest("a") : null;
    const number = Number(link?.hash.slice(2));
    if (!event.shiftKey || !link || !this.#aim[0] || number === this.#aim[0]) return;
    event.preventDefault();
    const [first, last] = [this.#aim[0], number].sort((one, other) => one - other);
    location.hash = `L${first}-L${last}`;
  }

  /** @param {Line} line
   * @param {number} place */
  #line(line, place) {
    const text = drawn(line, this.#search.wanted);
    const made = make("div", { class: "line" });
    if (line.number) {
      made.id = `L${line.number}`;
      made.append(make("a", { href: `#L${line.number}`, "aria-label": `Line ${line.number}`, tabindex: "-1" }, String(line.number)));
      made.classList.toggle("aim", line.number >= this.#aim[0] && line.number <= this.#aim[1]);
    } else made.classList.add("gone");
    made.append(text);
    if (place === this.#search.place) text.querySelector("mark")?.classList.add("now");
    return made;
  }

  // --- finding -----------------------------------------------------------------------------------------------

  #find() {
    this.#search.look(this.#field.value);
    this.#search.more(this.#text.lines);
    if (!this.#step(1)) this.#lines.redraw();
    this.#turned();
  }

  /** @param {number} by */
  #step(by) {
    const place = this.#search.step(by);
    if (place !== undefined) this.#goTo(place);
    return place !== undefined;
  }
}

customElements.define("log-tail", LogTail);
