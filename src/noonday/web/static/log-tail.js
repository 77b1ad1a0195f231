// <log-tail data-run="…" [data-attempt="2"]>: a run's output as it is written. Follows the end until somebody scrolls
// up; searches; links to lines (#L120); draws only the lines that can be seen, so that 100,000 of them stay light.
// @ts-check

import { isOn, listen } from "./live.js";
import { columns, drawn, LogText, plain } from "./log-text.js";

const TALL = 20; // px of a line, as in the style
const NUMBERS = 9; // columns
const BEYOND = 30; // lines drawn above and below what can be seen
const LOOK = 2_000; // ms between looks that no event asked for
const WRAP = "noonday-wrap";

/** @param {string} name
 * @param {Record<string, string>} [given]
 * @param {(Node | string)[]} inside */
function make(name, given = {}, ...inside) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(given)) made.setAttribute(key, value);
  made.append(...inside);
  return made;
}

class LogTail extends HTMLElement {
  #log = new LogText();
  #attempt = 0;
  #ended = false;
  #busy = false;
  #again = false;
  #tries = 0;
  #timer = 0;
  #frame = 0;
  #follow = true;
  #wrap = false;
  #aim = 0; // number of the line that the address names
  #aims = false; // it was not yet gone to
  #wanted = "";
  /** @type {number[]} */
  #matches = []; // places of lines
  #match = -1;
  #searched = 0; // lines that were searched already
  /** @type {number[]} */
  #tops = []; // rows above each line, where lines are wrapped
  /** @type {Map<number, HTMLElement>} */
  #drawn = new Map();
  #stop = () => {};

  connectedCallback() {
    this.#attempt = Number(this.dataset.attempt ?? 0);
    this.#wrap = localStorage.getItem(WRAP) === "on";
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
    clearTimeout(this.#timer);
    this.#resized.disconnect();
    removeEventListener("hashchange", this.#named);
    document.removeEventListener("visibilitychange", this.#seen);
  }

  #width = 0;
  #resized = new ResizeObserver(() => {
    const width = this.lines?.clientWidth ?? 0;
    if (width === this.#width) return this.#shown();
    this.#width = width;
    this.#laid();
  });

  #build() {
    const file = `/ui/runs/${this.dataset.run}/output.txt` + (this.dataset.attempt ? `?attempt=${this.dataset.attempt}` : "");
    this.search = /** @type {HTMLInputElement} */ (make("input", { type: "search", placeholder: "Find in the output", "aria-label": "Find in the output", autocomplete: "off" }));
    this.count = make("span", { class: "none", role: "status" });
    this.following = /** @type {HTMLButtonElement} */ (make("button", { type: "button", class: "button", title: "Stay at the end while it is written" }, "Follow"));
    const wrap = /** @type {HTMLInputElement} */ (make("input", { type: "checkbox" }));
    wrap.checked = this.#wrap;
    const before = make("button", { type: "button", "aria-label": "The match before" }, "↑");
    const next = make("button", { type: "button", "aria-label": "The next match" }, "↓");
    this.room = make("div", { class: "room" });
    this.lines = make("div", { class: "lines", tabindex: "0", role: "region", "aria-label": "Lines of the output" }, this.room);
    this.size = make("span");
    this.notice = make("span", { role: "status" });
    this.replaceChildren(
      make("div", { class: "row bench", role: "group", "aria-label": "Output" }, this.search, before, next, this.count,
        make("span", { class: "grow" }), make("label", {}, wrap, " Wrap"), this.following,
        make("a", { class: "button", href: file, download: "" }, "Download")),
      this.lines,
      make("div", { class: "foot" }, this.size, this.notice),
    );
    this.lines.addEventListener("scroll", () => this.#scrolled(), { passive: true });
    this.following.addEventListener("click", () => this.#setFollow(!this.#follow));
    wrap.addEventListener("change", () => {
      this.#wrap = wrap.checked;
      localStorage.setItem(WRAP, wrap.checked ? "on" : "off");
      this.#laid();
    });
    this.search.addEventListener("input", () => this.#find());
    this.search.addEventListener("keydown", (event) => {
      if (event.key !== "Enter") return;
      event.preventDefault();
      this.#step(event.shiftKey ? -1 : 1);
    });
    before.addEventListener("click", () => this.#step(-1));
    next.addEventListener("click", () => this.#step(1));
    this.#resized.observe(this.lines);
    this.#setFollow(this.#follow);
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
      this.#say(this.#ended ? "" : "running");
    } catch (error) {
      this.#tries++;
      this.#say(error instanceof Refused ? "refused" : "reconnecting");
    }
    this.#busy = false;
    if (!this.#ended) {
      const wait = this.#tries ? Math.min(500 * 2 ** this.#tries, 15_000) : LOOK;
      this.#timer = setTimeout(() => this.#due(), wait);
    }
  }

  #due() {
    if (document.visibilityState === "visible" && (isOn() || this.#tries)) void this.#read();
    else this.#timer = setTimeout(() => this.#due(), LOOK);
  }

  #seen = () => void (document.visibilityState === "visible" && this.#read());

  /** Read on; whether there is more at once. */
  async #page() {
    const which = this.#attempt ? `&attempt=${this.#attempt}` : "";
    const answer = await fetch(`/api/v2/executions/${this.dataset.run}/output?after=${this.#log.next}${which}`);
    if (answer.status === 401 || answer.status === 403 || answer.status === 404) throw new Refused();
    if (!answer.ok) throw new Error(String(answer.status));
    const found = await answer.json();
    if (!this.dataset.attempt && found.newest_attempt !== this.#attempt) {
      const anew = this.#attempt !== 0;
      this.#attempt = found.newest_attempt;
      if (anew) {
        this.#forget();
        return true;
      }
    }
    for (const piece of found.pieces) this.#log.add(piece);
    this.#log.next = found.next;
    this.#ended = found.ended;
    if (found.pieces.length) this.#grown(found.more);
    else if (this.#ended) this.#shown();
    return found.more;
  }

  /** Another attempt writes now. */
  #forget() {
    this.#log = new LogText();
    this.#restart();
  }

  #restart() {
    this.#matches = [];
    this.#match = -1;
    this.#searched = 0;
    this.#tops = [];
    this.#clear();
  }

  /** @param {boolean} more whether the rest is yet to come */
  #grown(more) {
    const last = this.#log.lines.length - 1;
    if (last + 1 < this.#searched) this.#restart(); // the middle went
    for (const [place, line] of this.#drawn) if (place >= last - 1 || place >= this.#searched - 1) line.remove(), this.#drawn.delete(place);
    this.#measure();
    this.#matchMore();
    if (this.#aims && (this.#log.reaches(this.#aim) || (this.#ended && !more))) this.#goTo(this.#log.indexOf(this.#aim));
    else if (this.#follow) this.lines?.scrollTo({ top: this.lines.scrollHeight });
    this.#shown();
  }

  /** @param {"running" | "reconnecting" | "refused" | ""} state */
  #say(state) {
    if (!this.notice || !this.size) return;
    const lines = this.#log.lines.length;
    this.size.textContent = lines ? `${lines.toLocaleString("en")} ${lines === 1 ? "line" : "lines"}` : this.#ended ? "Nothing was written." : "Nothing was written yet.";
    const text = { running: "", reconnecting: "Connection lost. Reconnecting…", refused: "This output cannot be read any more.", "": "" }[state];
    if (this.notice.textContent !== text) this.notice.textContent = text;
    this.notice.className = text ? "lost" : "";
    this.dataset.state = state || "ended";
    if (this.following) this.following.hidden = this.#ended;
  }

  // --- drawing -----------------------------------------------------------------------------------------------

  #clear() {
    for (const line of this.#drawn.values()) line.remove();
    this.#drawn.clear();
  }

  #laid() {
    if (!this.lines) return;
    this.lines.classList.toggle("wrap", this.#wrap);
    const place = this.#at(this.lines.scrollTop);
    this.#tops = [];
    this.#clear();
    this.#measure();
    this.lines.scrollTop = this.#follow ? this.lines.scrollHeight : this.#top(place);
    this.#shown();
  }

  /** Rows above each line; lines that were measured stay so, but the last, which may have grown. */
  #measure() {
    const lines = this.#log.lines;
    if (this.#wrap && this.lines) {
      const fit = Math.max(20, Math.floor(this.lines.clientWidth / this.#charWidth()) - NUMBERS - 3);
      this.lines.style.setProperty("--fit", String(fit));
      const from = Math.max(0, this.#tops.length - 2);
      let rows = this.#tops[from] ?? 0;
      for (let place = from; place < lines.length; place++) {
        this.#tops[place] = rows;
        rows += Math.max(1, Math.ceil(columns(lines[place].text) / fit));
      }
      this.#tops[lines.length] = rows;
    }
    if (this.room) this.room.style.height = `${this.#top(lines.length)}px`;
    // As tall as its lines, within the bounds of the style; the extra is room for a scroll bar below.
    if (this.lines) this.lines.style.height = `${Math.max(6 * TALL, this.#top(lines.length) + TALL)}px`;
  }

  #charWidth() {
    const probe = make("span", { class: "line" }, "0".repeat(100));
    probe.style.visibility = "hidden";
    probe.style.minWidth = "0";
    probe.style.width = "max-content";
    this.room?.append(probe);
    const width = probe.getBoundingClientRect().width / 100 || 8;
    probe.remove();
    return width;
  }

  /** @param {number} place */
  #top(place) {
    return (this.#wrap ? this.#tops[place] ?? 0 : place) * TALL;
  }

  /** The line at a height.
   * @param {number} height */
  #at(height) {
    const row = Math.floor(height / TALL);
    if (!this.#wrap) return row;
    let low = 0;
    let high = this.#log.lines.length;
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if ((this.#tops[middle] ?? 0) <= row) low = middle;
      else high = middle - 1;
    }
    return low;
  }

  #shown() {
    this.#frame ||= requestAnimationFrame(() => {
      this.#frame = 0;
      this.#draw();
    });
  }

  #draw() {
    if (!this.lines || !this.room) return;
    const first = Math.max(0, this.#at(this.lines.scrollTop) - BEYOND);
    const last = Math.min(this.#log.lines.length - 1, this.#at(this.lines.scrollTop + this.lines.clientHeight) + BEYOND);
    for (const [place, line] of this.#drawn) {
      if (place < first || place > last) line.remove(), this.#drawn.delete(place);
    }
    for (let place = first; place <= last; place++) {
      if (!this.#drawn.has(place)) this.#drawn.set(place, this.room.appendChild(this.#line(place)));
    }
  }

  /** @param {number} place */
  #line(place) {
    const line = this.#log.lines[place];
    const text = drawn(line, this.#wanted);
    const made = make("div", { class: "line" });
    if (line.number) {
      made.id = `L${line.number}`;
      made.append(make("a", { href: `#L${line.number}`, "aria-label": `Line ${line.number}` }, String(line.number)));
    } else made.classList.add("gone");
    made.append(text);
    made.classList.toggle("aim", line.number !== 0 && line.number === this.#aim);
    made.style.top = `${this.#top(place)}px`;
    if (place === this.#matches[this.#match]) text.querySelector("mark")?.classList.add("now");
    return made;
  }

  #redraw() {
    this.#clear();
    this.#draw();
  }

  // --- moving ------------------------------------------------------------------------------------------------

  #scrolled() {
    if (!this.lines) return;
    const left = this.lines.scrollHeight - this.lines.clientHeight - this.lines.scrollTop;
    const end = left < TALL * 1.5;
    if (end !== this.#follow && (end || left > TALL * 2)) this.#setFollow(end, false);
    this.#shown();
  }

  /** @param {boolean} on
   * @param {boolean} [move] */
  #setFollow(on, move = true) {
    this.#follow = on;
    this.following?.setAttribute("aria-pressed", String(on));
    this.following?.classList.toggle("on", on);
    if (on && move) this.lines?.scrollTo({ top: this.lines.scrollHeight });
  }

  /** @param {number} place of a line */
  #goTo(place) {
    if (!this.lines) return;
    this.#setFollow(false);
    this.#aims = false;
    this.lines.scrollTop = Math.max(0, this.#top(place) - this.lines.clientHeight / 2);
    this.#redraw();
  }

  #named = () => {
    const found = /^#L(\d{1,12})$/.exec(location.hash);
    this.#aim = found ? Number(found[1]) : 0;
    this.#aims = this.#aim > 0;
    if (this.#aims) this.#setFollow(false);
    if (this.#aims && this.#log.reaches(this.#aim)) this.#goTo(this.#log.indexOf(this.#aim));
  };

  // --- finding -----------------------------------------------------------------------------------------------

  #find() {
    this.#wanted = this.search?.value.toLowerCase() ?? "";
    this.#matches = [];
    this.#match = -1;
    this.#searched = 0;
    this.#matchMore();
    if (this.#matches.length) this.#step(1);
    else this.#redraw();
  }

  #matchMore() {
    const lines = this.#log.lines;
    if (this.#wanted) {
      const from = Math.max(0, this.#searched - 1);
      if (this.#matches[this.#matches.length - 1] === from) this.#matches.pop();
      for (let place = from; place < lines.length; place++) {
        if (plain(lines[place].text).toLowerCase().includes(this.#wanted)) this.#matches.push(place);
      }
    }
    this.#searched = lines.length;
    this.#counted();
  }

  /** @param {number} by */
  #step(by) {
    const many = this.#matches.length;
    if (!many) return;
    this.#match = this.#match < 0 ? (by > 0 ? 0 : many - 1) : (this.#match + by + many) % many;
    this.#counted();
    this.#goTo(this.#matches[this.#match]);
  }

  #counted() {
    if (!this.count) return;
    const many = this.#matches.length;
    const text = !this.#wanted ? "" : many ? `${Math.max(this.#match, 0) + 1} of ${many.toLocaleString("en")} lines` : "no line";
    if (this.count.textContent !== text) this.count.textContent = text;
  }
}

class Refused extends Error {}

customElements.define("log-tail", LogTail);
