// SPDX-License-Identifier: Apache-2.0
// The page: asks /api/stats for what is and /api/history for the last ten minutes, and draws both. Whatever a runtime or its clients
// have named goes in as text, never as markup.
"use strict";

const STATS_MS = 2000, HISTORY_MS = 5000, LONGEST_MS = 30000;
const SVG = "http://www.w3.org/2000/svg";
const COLOURS = 7; // and one for all others together
const FEW = 12; // models that one overlooks without looking for their names

// ---- words ----

const counts = new Intl.NumberFormat("en");
const byName = new Intl.Collator("en", { numeric: true }).compare;

function threeDigits(value) {
  const a = Math.abs(value);
  return value.toFixed(a === 0 || a >= 99.95 ? 0 : a >= 9.995 ? 1 : 2);
}

function rate(value) {
  if (value === null || value === undefined) return "–";
  const a = Math.abs(value);
  return a >= 999500 ? threeDigits(value / 1e6) + " M" : a >= 9999.5 ? threeDigits(value / 1e3) + " k" : threeDigits(value);
}

function duration(ns) {
  if (ns === null || ns === undefined) return "–";
  if (ns < 999.5) return Math.round(ns) + " ns";
  if (ns < 999.5e3) return threeDigits(ns / 1e3) + " µs";
  if (ns < 999.5e6) return threeDigits(ns / 1e6) + " ms";
  return threeDigits(ns / 1e9) + " s";
}

function percent(share) {
  if (share === null) return "–";
  const value = Math.min(1, share) * 100;
  return value > 0 && value < 0.05 ? "< 0.1 %" : value.toFixed(value === 0 || value >= 9.95 ? 0 : 1) + " %";
}

function age(seconds) {
  const s = Math.max(0, Math.round(seconds));
  if (s < 120) return s + " s";
  if (s < 7200) return Math.floor(s / 60) + " min";
  if (s < 172800) return Math.floor(s / 3600) + " h " + Math.floor((s % 3600) / 60) + " min";
  return Math.floor(s / 86400) + " d " + Math.floor((s % 86400) / 3600) + " h";
}

function bytes(value) {
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let unit = 0;
  for (; value >= 1000 && unit < units.length - 1; unit++) value /= 1024;
  return (unit ? threeDigits(value) : value) + " " + units[unit];
}

function clock(ms) {
  return new Date(ms).toLocaleTimeString([], { hour12: false });
}

// ---- elements ----

function put(element, attributes, children) {
  for (const [key, value] of Object.entries(attributes || {})) element.setAttribute(key, value);
  element.append(...children);
  return element;
}

function el(tag, attributes, ...children) {
  return put(document.createElement(tag), attributes, children);
}

function svg(tag, attributes, ...children) {
  return put(document.createElementNS(SVG, tag), attributes, children);
}

function heading(text, ...more) {
  return el("th", { scope: "row", title: text }, text, ...more);
}

function cell(text, kind, title) {
  const td = el("td", kind ? { class: kind } : {}, text);
  if (title) td.title = title;
  return td;
}

function count(value, isBad) {
  return cell(counts.format(value), value === 0 ? "zero" : isBad ? "bad" : "");
}

function time(ns) {
  return cell(ns ? duration(ns) : "–", ns ? "" : "zero", ns ? counts.format(ns) + " ns" : "");
}

function fill(section, rows, columns, nothing) {
  const body = section.querySelector("tbody");
  body.replaceChildren(...(rows.length ? rows : [el("tr", {}, el("td", { class: "empty", colspan: columns }, nothing))]));
}

function badge(state) {
  const kinds = { ready: "good", serving: "good", failed: "bad", dead: "bad", degraded: "warn", loading: "warn", waiting: "warn", starting: "warn" };
  return el("span", { class: "badge " + (kinds[state] || "") }, state);
}

// ---- series ----

function last(values) {
  for (let i = values.length - 1; i >= 0; i--) if (values[i] !== null) return values[i];
  return null;
}

function latest(values) {
  return values && values.length ? values[values.length - 1] : null;
}

function sum(lists, n) {
  return Array.from({ length: n }, (_, i) => {
    const values = lists.map((list) => list[i]).filter((value) => value !== null);
    return values.length ? values.reduce((a, b) => a + b, 0) : null;
  });
}

/** What lies between the gaps, as a path. */
function line(values, x, y) {
  let path = "", pen = false;
  values.forEach((value, i) => {
    if (value === null) { pen = false; return; }
    path += (pen ? "L" : "M") + x(i).toFixed(1) + " " + y(value).toFixed(1);
    if (!pen && (i + 1 === values.length || values[i + 1] === null)) path += "h.01"; // a point alone
    pen = true;
  });
  return path;
}

function spark(values, points) {
  const top = Math.max(...values.filter((value) => value !== null), 0) || 1;
  const x = (i) => ((i + points - values.length) / (points - 1)) * 100, y = (value) => 24 - (value / top) * 22;
  const stroke = line(values, x, y), first = values.findIndex((value) => value !== null);
  const area = first < 0 || values.indexOf(null, first) >= 0 ? "" : stroke + `L${x(values.length - 1)} 26L${x(first)} 26Z`;
  return svg("svg", { class: "spark", viewBox: "0 0 100 26", preserveAspectRatio: "none", "aria-hidden": "true" },
    svg("path", { class: "area", d: area }), svg("path", { d: stroke }));
}

/** An axis from 0 in at most four steps of 1, 2 or 5 times a power of ten; and where on it a value lies, from 0 to 1. */
function steps(values) {
  const top = Math.max(...values, 0) || 1, least = top / 4, power = 10 ** Math.floor(Math.log10(least));
  const step = [1, 2, 5, 10].map((times) => times * power).find((one) => one >= least), n = Math.max(1, Math.ceil(top / step - 1e-9));
  return { ticks: Array.from({ length: n + 1 }, (_, i) => i * step), share: (value) => value / (n * step) };
}

/** The same of powers of ten. */
function decades(values) {
  const low = Math.floor(Math.log10(Math.min(...values, Infinity))), high = Math.ceil(Math.log10(Math.max(...values, 0)));
  if (!isFinite(low)) return { ticks: [], share: () => 0 };
  const n = Math.max(1, high - low);
  return { ticks: Array.from({ length: n + 1 }, (_, i) => 10 ** (low + i)), share: (value) => (Math.log10(value) - low) / n };
}

/** Lines over ten minutes. Arrow keys and the pointer move a cursor, for which the legend says the values. */
class Chart {
  constructor(figure, word, isLogarithmic) {
    this.word = word;
    this.isLogarithmic = isLogarithmic;
    this.cursor = null;
    this.svg = svg("svg", { role: "img", tabindex: "0" });
    this.legend = el("ul", { class: "legend" });
    this.note = el("p", { class: "note" });
    figure.append(this.svg, this.legend, this.note);
    this.svg.addEventListener("pointermove", (event) => this.point(event.clientX));
    this.svg.addEventListener("pointerleave", () => this.move(null));
    this.svg.addEventListener("blur", () => this.move(null));
    this.svg.addEventListener("keydown", (event) => this.key(event));
    new ResizeObserver(() => this.draw()).observe(this.svg);
  }

  set(data) {
    this.data = data;
    this.draw();
  }

  place(i) {
    return this.left + ((i + this.data.points - this.data.ms.length) / (this.data.points - 1)) * (this.width - this.left - 8);
  }

  point(clientX) {
    if (!this.data || !this.data.ms.length) return;
    const at = clientX - this.svg.getBoundingClientRect().left;
    const i = this.data.ms.findIndex((_, n) => this.place(n) >= at - 4);
    this.move(i < 0 ? this.data.ms.length - 1 : i);
  }

  key(event) {
    const by = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (!by || !this.data) return;
    event.preventDefault();
    const n = this.data.ms.length, from = this.cursor === null ? n : this.cursor;
    this.move(Math.min(n - 1, Math.max(0, from + by)));
  }

  move(cursor) {
    if (cursor === this.cursor) return;
    this.cursor = cursor;
    this.draw();
  }

  draw() {
    this.width = this.svg.clientWidth;
    if (!this.data || !this.width) return;
    const height = this.svg.clientHeight, foot = height - 20, { lines, points, ms } = this.data;
    const values = lines.flatMap((one) => one.values.filter((value) => value !== null));
    const { ticks, share } = this.isLogarithmic ? decades(values.filter((value) => value > 0)) : steps(values);
    const y = (value) => foot - share(value) * (foot - 10);
    const parts = [];
    this.left = 62;
    for (const at of ticks)
      parts.push(svg("line", { class: "grid", x1: this.left, x2: this.width - 8, y1: y(at), y2: y(at) }),
        svg("text", { class: "axis", x: this.left - 8, y: y(at) + 4, "text-anchor": "end" }, at ? this.word(at).replace(/\.0+(?=\D|$)/, "") : "0"));
    for (const [share, text] of [[0, "10 min ago"], [0.5, "5 min"], [1, "now"]])
      parts.push(svg("text", { class: "axis", x: this.left + share * (this.width - this.left - 8), y: height - 4,
        "text-anchor": share === 0 ? "start" : share === 1 ? "end" : "middle" }, text));
    for (const one of lines) parts.push(svg("path", { class: "series c" + one.colour, d: line(one.values, (i) => this.place(i), y) }));
    const at = this.cursor !== null && this.cursor < ms.length ? this.cursor : null;
    if (at !== null) parts.push(svg("line", { class: "cursor", x1: this.place(at), x2: this.place(at), y1: 6, y2: foot }));
    this.svg.replaceChildren(...parts);
    this.tell(lines, at, ms, points);
  }

  tell(lines, at, ms, points) {
    const value = (one) => (at === null ? latest(one.values) : one.values[at]);
    this.legend.replaceChildren(...lines.map((one) => el("li", { class: "c" + one.colour }, el("i", { "aria-hidden": "true" }),
      el("span", {}, one.name), el("b", {}, value(one) === null ? "–" : this.word(value(one))))));
    if (!lines.length) this.legend.replaceChildren(el("li", {}, "Nothing was asked in this time."));
    this.note.textContent = at === null ? `Now, and ${age(points * this.data.step)} back; arrow keys and the pointer go there.` : "At " + clock(ms[at]);
    this.svg.setAttribute("aria-label", lines.map((one) => `${one.name}: ${latest(one.values) === null ? "nothing" : this.word(latest(one.values))}`).join("; ") || "nothing");
  }
}

// ---- one runtime ----

class Runtime {
  constructor(name) {
    this.name = name;
    this.section = document.getElementById("runtime").content.cloneNode(true).querySelector("section");
    this.section.id = "runtime-" + name;
    this.find(".head h2").textContent = name;
    this.section.setAttribute("aria-label", "Runtime " + name);
    for (const region of this.section.querySelectorAll(".scroll")) region.setAttribute("aria-label", region.closest(".card").querySelector("h3").textContent);
    this.throughput = new Chart(this.find(".throughput"), rate, false);
    this.latency = new Chart(this.find(".latency"), duration, true);
    this.find(".filter").addEventListener("input", () => this.runtime && this.runtime.stats && this.showModels(this.runtime.stats));
    this.history = null;
    this.colours = new Map();
  }

  find(selector) {
    return this.section.querySelector(selector);
  }

  show(runtime) {
    this.runtime = runtime;
    const stats = runtime.stats;
    this.find(".head .state").replaceWith(badge(runtime.up ? stats.state : stats ? stats.state : "not there"));
    this.find(".head .badge").classList.add("state");
    this.find(".facts").textContent = stats
      ? `version ${stats.release} · process ${stats.pid} · ${runtime.up ? "up " + age((stats.taken_ns - stats.started_ns) / 1e9) : "started " + new Date(stats.started_unix_ns / 1e6).toLocaleString()}`
      : "";
    this.showBanner(runtime);
    this.section.classList.toggle("gone", !runtime.up);
    this.find(".body").hidden = !stats;
    if (!stats) return;
    this.showTiles(stats);
    this.showModels(stats);
    this.showQueues(stats);
    this.showRefusals(stats);
    this.showMemory(stats);
    this.showClients(stats);
    this.showLanes(stats);
  }

  showBanner(runtime) {
    const banner = this.find(".banner");
    const since = runtime.gone_unix_ns ? "since " + clock(runtime.gone_unix_ns / 1e6) : "since before the exporter looked";
    const text = runtime.up ? "" : runtime.stats
      ? `Runtime gone ${since}: ${runtime.cause}. This is its last state; starling postmortem ${this.name} says what was in flight.`
      : `No runtime of this name has been there: ${runtime.cause}. To start one: starling serve MODELS --name ${this.name}`;
    if (banner.textContent !== text) banner.textContent = text;
    banner.hidden = runtime.up;
  }

  series(key) {
    return this.history ? sum(this.history.models.map((model) => model[key]), this.history.unix_ms.length) : [];
  }

  tile(name, value, unit, values, title) {
    const dd = el("dd", {}, value, " ", el("small", {}, unit));
    if (title) dd.title = title;
    return el("div", {}, el("dt", {}, name), dd, values ? spark(values, this.points()) : "");
  }

  points() {
    return this.history ? Math.round(600 / this.history.step_seconds) : 120;
  }

  showTiles(stats) {
    const models = stats.models, total = (key) => models.reduce((all, model) => all + model[key], 0);
    const waiting = stats.queues.reduce((all, queue) => all + queue.depth, 0), failures = ["failed", "expired", "cancelled"];
    const done = this.series("completed_per_second"), busy = this.series("busy_workers"), inFlight = this.series("in_flight");
    const refused = this.history ? sum(Object.values(this.history.refusals_per_second), this.history.unix_ms.length) : [];
    const trouble = sum(failures.map((key) => this.series(key + "_per_second")), done.length);
    const places = stats.lets.reduce((all, let_) => all + (let_.workers ? let_.at_once : 0), 0);
    this.find(".tiles").replaceChildren(
      this.tile("Requests done", rate(latest(done)), "a second", done),
      this.tile("In flight", counts.format(stats.dispatchers.reduce((all, d) => all + d.in_flight, 0)), "now", inFlight),
      this.tile("Waiting", counts.format(waiting), "now", sum([this.series("waiting_requests"), this.series("waiting_segments")], done.length)),
      this.tile("Workers busy", rate(latest(busy)), places ? "of " + places + " at once" : "", busy),
      this.tile("Failures", rate(latest(trouble)), "a second", trouble, `failed, expired or cancelled; in all ${counts.format(failures.reduce((all, key) => all + total(key), 0))}`),
      this.tile("Refused", rate(latest(refused)), "a second", refused),
      this.tile("Clients", counts.format(stats.clients.length), "attached"),
      this.tile("Memory promised", bytes(stats.memory_bytes), stats.memory_max === null ? "" : "of " + bytes(stats.memory_max), this.history ? this.history.memory_bytes : []));
  }

  showModels(stats) {
    const past = new Map(this.history ? this.history.models.map((model) => [model.name, model]) : []);
    const isShown = (model) => model.name !== "(others)" || model.requests > 0;
    const order = { failed: 0, degraded: 1, loading: 2, waiting: 3 };
    const models = stats.models.filter(isShown).sort((a, b) => (order[a.state] ?? 9) - (order[b.state] ?? 9) || byName(a.name, b.name));
    const filter = this.find(".filter"), part = filter.value.toLowerCase();
    filter.hidden = models.length <= FEW && !part;
    let seconds = 0;
    const rows = models.filter((model) => model.name.toLowerCase().includes(part)).map((model) => {
      const history = past.get(model.name), window = history ? history.window : null;
      const name = heading(model.name, el("small", {}, model.kind === "model" ? "version " + model.version : model.kind + (model.members ? " of " + model.members : "")));
      const state = cell(badge(model.state), "left");
      if (model.why) state.append(el("small", {}, model.why));
      if (window) seconds = Math.max(seconds, window.seconds);
      const times = (key) => time(window && window.count ? window[key] : 0);
      const per = history ? latest(history.completed_per_second) : null, batch = history ? last(history.batch_samples.map((v) => v || null)) : null;
      const row = el("tr", {}, name, state, cell(rate(per), per ? "" : "zero"), times("p50_ns"), times("p99_ns"), times("p999_ns"), times("max_ns"),
        count(model.in_flight), cell(batch ? rate(batch) : "–", batch ? "" : "zero"), count(model.completed), count(model.failed, true), count(model.expired, true),
        count(model.cancelled), count(model.refused, true));
      row.dataset.model = model.name;
      return row;
    });
    fill(this.find(".models"), rows, 14, part ? "No model has that in its name." : "It serves no model. Put NAME.onnx or NAME/VERSION/model.onnx into its repository, then: starling load NAME");
    const out = this.history && this.history.left_out ? ` ${this.history.left_out} models and workers are too many to be followed.` : "";
    this.find(".window").textContent = seconds ? `Percentiles are of the last ${age(seconds)}, from a request's arrival to its completion.${out}` : out;
  }

  /** Of a name: requests that wait for their turn, and segments that wait for a worker. */
  showQueues(stats) {
    const waiting = new Map();
    for (const queue of stats.queues) {
      if (queue.model === "(others)") continue;
      const one = waiting.get(queue.model) || { requests: 0, segments: 0, samples: 0, oldest_ns: 0 };
      one[queue.kind] += queue.depth;
      one.samples += queue.samples;
      if (queue.oldest_ns && (!one.oldest_ns || queue.oldest_ns < one.oldest_ns)) one.oldest_ns = queue.oldest_ns;
      waiting.set(queue.model, one);
    }
    const depth = (one) => one.requests + one.segments;
    const rows = [...waiting].sort(([a, x], [b, y]) => depth(y) - depth(x) || byName(a, b)).slice(0, 40).map(([name, one]) =>
      el("tr", {}, heading(name), count(one.requests), count(one.segments), count(one.samples),
        one.oldest_ns ? time(Math.max(0, stats.taken_ns - one.oldest_ns)) : cell("–", "zero")));
    fill(this.find(".queues"), rows, 5, "No queue.");
  }

  showRefusals(stats) {
    const totals = new Map();
    for (const dispatcher of stats.dispatchers)
      for (const [cause, n] of Object.entries(dispatcher.refusals)) totals.set(cause, (totals.get(cause) || 0) + n);
    const rows = [...totals].filter(([, n]) => n > 0).sort((a, b) => b[1] - a[1]).map(([cause, n]) => {
      const now = this.history ? latest(this.history.refusals_per_second[cause] || []) : null;
      return el("tr", {}, heading(cause), count(n, true), cell(rate(now), now ? "" : "zero"));
    });
    fill(this.find(".refusals"), rows, 3, "Nothing was refused.");
  }

  showMemory(stats) {
    const card = this.find(".memory"), meter = card.querySelector(".meter");
    meter.hidden = stats.memory_max === null;
    meter.firstElementChild.style.width = Math.min(100, (stats.memory_bytes / (stats.memory_max || Infinity)) * 100) + "%";
    card.querySelector(".note").textContent = stats.memory_max === null ? bytes(stats.memory_bytes) + " promised; there is no bound"
      : `${bytes(stats.memory_bytes)} promised of ${bytes(stats.memory_max)} (memory_max)`;
    fill(card, stats.memory.filter((kind) => kind.most_bytes > 0).map((kind) =>
      el("tr", {}, heading(kind.name), cell(bytes(kind.bytes), kind.bytes ? "" : "zero"), cell(bytes(kind.most_bytes)))), 3, "Nothing.");
  }

  showClients(stats) {
    const rows = [...stats.clients].sort((a, b) => b.requests - a.requests || a.id - b.id).slice(0, 64).map((client) =>
      el("tr", {}, heading(client.label || "client " + client.id, el("small", {}, `number ${client.id}, for ${age((stats.taken_ns - client.attached_ns) / 1e9)}`)),
        cell(String(client.uid)), cell(String(client.pid)), count(client.requests), count(client.in_flight), count(client.refused, true), cell(bytes(client.arena_bytes))));
    fill(this.find(".clients"), rows, 7, "Nobody is attached.");
  }

  /** Lanes stay as long as their worker or let does: they are drawn again, not made again. */
  lane(list, key, title, place, busy) {
    let item = [...list.children].find((one) => one.dataset.key === key);
    if (!item) {
      item = el("li", { "data-key": key }, el("span", { class: "who" }), el("canvas", { role: "img", width: 480, height: 18 }), el("output"));
      list.append(item);
    }
    item.firstChild.replaceChildren(title, " ", el("small", {}, place));
    item.firstChild.title = title + " " + place;
    const now = latest(busy), known = busy.filter((value) => value !== null), mean = known.length ? known.reduce((a, b) => a + b, 0) / known.length : 0;
    item.lastChild.textContent = percent(now);
    item.children[1].setAttribute("aria-label", `${title}: busy ${percent(now)} now, ${percent(mean)} on average`);
    this.drawLane(item.children[1], busy);
    return key;
  }

  drawLane(canvas, busy) {
    const context = canvas.getContext("2d"), points = this.points(), width = canvas.width / points;
    context.clearRect(0, 0, canvas.width, canvas.height);
    context.fillStyle = getComputedStyle(document.documentElement).getPropertyValue("--accent");
    busy.forEach((value, i) => {
      if (!value) return;
      context.globalAlpha = 0.1 + 0.9 * Math.sqrt(Math.min(1, value));
      context.fillRect((i + points - busy.length) * width, 0, width, canvas.height);
    });
  }

  showLanes(stats) {
    const workers = this.find(".workers ul"), lets = this.find(".lets ul"), names = new Map(stats.lets.map((let_) => [let_.index, let_]));
    const past = (list, index, name) => (this.history ? this.history[list].find((one) => one.index === index && one.name === name) : null);
    const shown = new Set(stats.workers.map((worker, i) => {
      const history = this.history ? this.history.workers.filter((one) => one.name === worker.model)[stats.workers.slice(0, i).filter((w) => w.model === worker.model).length] : null;
      const let_ = names.get(worker.let), cores = let_ ? let_.cores : worker.core === null ? "" : String(worker.core);
      const place = [worker.executor, cores && (/^\d+$/.test(cores) ? "core " : "cores ") + cores, worker.state === "serving" ? "" : worker.state].filter(Boolean).join(", ");
      return this.lane(workers, i + " " + worker.model, worker.model, place, history ? history.busy : []);
    }));
    for (const item of [...workers.children]) if (!shown.has(item.dataset.key)) item.remove();
    const used = stats.lets.filter((let_) => let_.workers > 0 || let_.busy_ns > 0);
    const shownLets = new Set(used.map((let_) => {
      const history = past("lets", let_.index, let_.name);
      return this.lane(lets, let_.index + " " + let_.name, let_.name, `${let_.cores ? (/^\d+$/.test(let_.cores) ? "core " : "cores ") + let_.cores + ", " : ""}${let_.workers} ${let_.workers === 1 ? "worker" : "workers"}`, history ? history.busy : []);
    }));
    for (const item of [...lets.children]) if (!shownLets.has(item.dataset.key)) item.remove();
    this.find(".workers").hidden = stats.workers.length === 0;
    this.find(".lets").hidden = used.length === 0;
  }

  /** The models that did most, the others together; a model keeps its colour while the page is open. */
  lines(key, join) {
    const done = (model) => model.completed_per_second.reduce((all, value) => all + (value || 0), 0);
    const models = this.history.models.filter((model) => done(model) > 0).sort((a, b) => done(b) - done(a));
    const lines = models.slice(0, COLOURS).map((model) => ({ name: model.name, values: model[key], colour: this.colourOf(model.name, models.slice(0, COLOURS)) }));
    if (models.length > COLOURS && join) lines.push({ name: `${models.length - COLOURS} others`, values: sum(models.slice(COLOURS).map((model) => model[key]), this.history.unix_ms.length), colour: COLOURS });
    return lines.sort((a, b) => byName(a.name, b.name));
  }

  colourOf(name, models) {
    if (!this.colours.has(name)) {
      const taken = new Set(models.filter((model) => this.colours.has(model.name)).map((model) => this.colours.get(model.name)));
      this.colours.set(name, [...Array(COLOURS).keys()].find((colour) => !taken.has(colour)) ?? 0);
    }
    return this.colours.get(name);
  }

  setHistory(history) {
    this.history = history;
    const common = { ms: history.unix_ms, points: this.points(), step: history.step_seconds };
    this.throughput.set({ ...common, lines: this.lines("completed_per_second", true) });
    this.latency.set({ ...common, lines: this.lines("p99_ns", false) });
    if (this.runtime) this.show(this.runtime);
  }
}

// ---- the page ----

const runtimes = new Map();
const page = { paused: false, answered: null, lostSince: null };

function runtimeOf(name) {
  if (!runtimes.has(name)) {
    const runtime = new Runtime(name);
    runtimes.set(name, runtime);
    document.getElementById("content").append(runtime.section);
    document.getElementById("names").append(el("a", { href: "#" + encodeURIComponent(runtime.section.id) }, name));
  }
  return runtimes.get(name);
}

function sayStatus() {
  const status = document.getElementById("status");
  status.classList.toggle("lost", page.lostSince !== null);
  const text = page.lostSince !== null ? "No answer from the exporter since " + clock(page.lostSince)
    : page.paused ? "Paused at " + clock(page.answered || Date.now()) : page.answered ? "As of " + clock(page.answered) : "Asking the exporter …";
  if (status.textContent !== text) status.textContent = text;
}

async function ask(path, take) {
  try {
    const answer = await fetch(path, { cache: "no-store", signal: AbortSignal.timeout(10000) });
    if (!answer.ok) throw new Error(answer.status);
    take(await answer.json());
    page.answered = Date.now();
    page.lostSince = null;
  } catch (error) {
    if (page.lostSince === null) page.lostSince = page.answered || Date.now();
    if (!(error instanceof TypeError) && !(error instanceof DOMException)) console.warn(path, error.message);
  }
  sayStatus();
}

function takeStats(data) {
  document.getElementById("version").textContent = data.exporter;
  document.getElementById("names").hidden = data.runtimes.length < 2;
  for (const runtime of data.runtimes) runtimeOf(runtime.name).show(runtime);
}

function takeHistory(data) {
  for (const history of data.runtimes) runtimeOf(history.name).setHistory(history);
}

/** Again and again while somebody looks, more slowly where an answer takes long. */
async function follow(path, take, everyMs) {
  for (;;) {
    const begun = performance.now();
    if (!page.paused && !document.hidden) await ask(path, take);
    const took = performance.now() - begun;
    await new Promise((done) => setTimeout(done, Math.min(LONGEST_MS, Math.max(everyMs, took * 4))));
  }
}

document.getElementById("pause").addEventListener("click", (event) => {
  page.paused = !page.paused;
  event.currentTarget.setAttribute("aria-pressed", page.paused);
  event.currentTarget.textContent = page.paused ? "Go on" : "Pause";
  sayStatus();
});

ask("/api/history", takeHistory).then(() => {
  follow("/api/stats", takeStats, STATS_MS);
  follow("/api/history", takeHistory, HISTORY_MS);
});
