// The page: what is typed becomes a request to the API, what comes back is written as text and drawn by view.js.
//
// No dependency, no build step. Nothing that anybody typed or any model wrote is ever read as markup.

import { mount } from "/view.js";

const TASKS = {
  attend: { name: "Look", label: "A sentence", go: "See it", examples: ["This is a cat", "When he saw his owner, the dog was happy, so he wagged his tail", "the the cat cat sat sat"] },
  translate: { name: "Translate", label: "A text to translate", go: "Translate", examples: ["The black cat ate the mouse.", "I have never seen such a beautiful garden."] },
  tag: { name: "Tag", label: "A text to tag, word by word", go: "Tag", examples: ["She quickly read the long letter.", "Time flies like an arrow."] },
  classify: { name: "Classify", label: "A text to classify", go: "Classify", examples: ["A warm, funny and moving film.", "Two hours that I will never get back.", "NVIDIA reported revenue of $30.0 billion, up 15% from the previous quarter and up 122% from a year ago."] },
  fill: { name: "Fill in", label: "A text with ____ for a word", go: "Fill in", examples: ["When he saw his owner, the dog was ____ , so he wagged his tail", "She drank a cup of ____ ."] },
  denoise: { name: "Restore", label: "A damaged text (____ for a word that is lost)", go: "Restore", examples: ["cat The ____ on mat the"] },
  generate: { name: "Go on", label: "The beginning of a text", go: "Go on", examples: ["Once upon a time", "The cat"] },
};
const FORMS = { html: "HTML", png: "PNG", svg: "SVG", pdf: "PDF", weights: "JSON" };
const START = { task: "attend", text: TASKS.attend.examples[0] };

const find = (id) => document.getElementById(id);
let known = null;   // mechanisms and models, as the server lists them
let latest = null;  // what the last answer was an answer to: { task, body }
let running = null; // the request that is under way
let shown = null;   // the view

// ---------------------------------------------------------------- small tools

function el(tag, props = {}, ...kids) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(props)) {
    if (value == null || value === false) continue;
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else node.setAttribute(name, value === true ? "" : value);
  }
  node.append(...kids.flat().filter((kid) => kid != null && kid !== false));
  return node;
}

const word = (text) => el("bdi", { dir: "auto" }, text);
/** W_q with its q below the line. */
const math = (text) => text.split(/_(\w+)/).map((part, n) => (n % 2 ? el("sub", {}, part) : part));
const percent = (p) => (p >= 0.9995 ? "100 %" : `${(100 * p).toFixed(1)} %`);

async function ask(path, body, signal) {
  const given = body === undefined ? {} : { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(body) };
  const answer = await fetch(path, { ...given, signal });
  if (answer.ok) return answer;
  const said = await answer.json().catch(() => ({}));
  const again = answer.headers.get("retry-after");
  throw new Error(`${said.error || `the server said ${answer.status}`}${again ? ` (again in ${again} s)` : ""}`);
}

// ---------------------------------------------------------------- the form

const task = () => document.querySelector("#tasks input:checked").value;
const able = (name) => name === "attend" || known.models.some((model) => model.task === name);

function row(label, control, ...more) {
  if (!control.id) control.id = `c${(row.count = (row.count || 0) + 1)}`;
  return el("div", { class: "row" }, el("label", { for: control.id }, label), control, more);
}

/** A part by its name, with its number where it takes one, and its formula below. */
function part(kind, parts, now, name) {
  const [called, number] = (now || parts[0].name).split(":");
  const choice = el("select", { name, id: name }, parts.map((p) => el("option", { value: p.name, selected: p.name === called }, p.name)));
  const input = el("input", { type: "number", step: "any", id: `${name}-number` });
  const formula = el("div", { class: "formula" });
  const fit = (value) => {
    const found = parts.find((p) => p.name === choice.value);
    input.hidden = found.number === null;
    input.setAttribute("aria-label", `${kind}: ${found.number || "number"}`);
    input.title = input.placeholder = found.number || "";
    input.value = value ?? found.default ?? "";
    formula.replaceChildren(...math(found.formula));
  };
  choice.addEventListener("change", () => fit());
  fit(number);
  const line = row(kind, choice, input, formula);
  line.value = () => choice.value + (input.hidden || input.value === "" ? "" : `:${Number(input.value)}`);
  return line;
}

/** The controls of one task, and `read`, which makes a request of them. */
const controls = {
  attend(state) {
    const first = { score: part("Score", known.scores, state.score || "scaled-dot", "score"), normalizer: part("Normalizer", known.normalizers, state.normalizer || "softmax", "normalizer") };
    const second = { score: part("Score", known.scores, state.score2 || "additive", "score2"), normalizer: part("Normalizer", known.normalizers, state.normalizer2 || "softmax", "normalizer2") };
    const both = el("input", { type: "checkbox", id: "both", checked: Boolean(state.score2) });
    const other = el("fieldset", { class: "group" }, el("legend", {}, "Beside it"), second.score, second.normalizer);
    other.hidden = !both.checked;
    both.addEventListener("change", () => { other.hidden = !both.checked; });
    const mask = el("select", { id: "mask" }, el("option", { value: "" }, "none"), known.masks.map((m) => el("option", { value: m, selected: m.split(":")[0] === (state.mask || "").split(":")[0] && Boolean(state.mask) }, m.split(":")[0])));
    const numbers = el("input", { type: "text", id: "mask-numbers", "aria-label": "Mask: whole numbers, with commas between", autocomplete: "off" });
    const fit = (value) => { const [, given] = mask.value.split(":"); numbers.hidden = !given; numbers.value = value || given || ""; };
    mask.addEventListener("change", () => fit());
    fit((state.mask || "").split(":")[1]);
    const width = el("input", { type: "number", min: 1, max: 16, value: state.width || 4, id: "width" }), seed = el("input", { type: "number", min: 0, value: state.seed || 0, id: "seed" });
    find("controls").replaceChildren(
      el("fieldset", { class: "group" }, el("legend", {}, "Mechanism"), first.score, first.normalizer, row("Mask", mask, numbers)),
      el("label", { class: "check" }, both, "Compare with another"), other,
      el("details", {}, el("summary", {}, "Numbers"), el("div", { class: "group" }, row("Per word", width), row("Seed", seed), el("p", { class: "quiet" }, "Each word has random numbers, the same for the same seed; equal words have equal numbers."))));
    return () => {
      const one = (pair) => ({ score: pair.score.value(), normalizer: pair.normalizer.value() });
      const named = mask.value && mask.value.split(":")[0] + (numbers.hidden ? "" : `:${numbers.value.replaceAll(" ", "")}`);
      return { mechanisms: both.checked ? [one(first), one(second)] : [one(first)], ...(named ? { mask: named } : {}), width: Number(width.value), seed: Number(seed.value) };
    };
  },

  ask(name, state) {
    const models = known.models.filter((model) => model.task === name);
    const model = el("select", { id: "model" }, models.map((m) => el("option", { value: m.name, selected: m.name === state.model }, m.about ? `${m.name}: ${m.about}` : m.name)));
    const to = el("select", { id: "to" }), toRow = row("Into", to);
    const fit = () => {
      const { languages } = models.find((m) => m.name === model.value);
      to.replaceChildren(...languages.map((l) => el("option", { value: l, selected: l === state.to }, language(l))));
      toRow.hidden = languages.length < 2;
    };
    model.addEventListener("change", fit);
    fit();
    const fields = [], number = (label, key, props) => { const input = el("input", { type: "number", id: key, ...props }); fields.push([key, input]); return row(label, input); };
    const options = [];
    if (name === "translate" || name === "denoise") options.push(number("Beam", "beam", { min: 1, max: 8, value: 4 }));
    if (name === "generate") options.push(number("Temperature", "temperature", { min: 0, max: 10, step: "any", value: 0.8 }), number("Pieces", "length", { min: 1, max: 256, value: 40 }), number("Seed", "seed", { min: 0, value: 1 }));
    if (name !== "tag" && name !== "classify") options.push(number("Answers", "n_best", { min: 1, max: name === "fill" ? 20 : 8, value: name === "fill" ? 5 : name === "generate" ? 1 : 3 }));
    find("controls").replaceChildren(el("fieldset", { class: "group" }, el("legend", {}, "Model"), row("Model", model), toRow),
      options.length ? el("details", {}, el("summary", {}, "Options"), el("div", { class: "group" }, options)) : "");
    return () => ({ model: model.value, ...(toRow.hidden ? {} : { to: to.value }), ...Object.fromEntries(fields.filter(([, input]) => input.value !== "").map(([key, input]) => [key, Number(input.value)])) });
  },
};

function language(code) {
  try { return new Intl.DisplayNames(["en"], { type: "language" }).of(code) || code; } catch { return code; }
}

let read = () => ({});

function prepare(name, state = {}) {
  const { label, go, examples } = TASKS[name];
  find("text-label").textContent = label;
  find("go").textContent = go;
  find("examples").replaceChildren(...examples.map((text) => el("button", { type: "button", title: text, onclick: () => { find("text").value = text; submit(); } }, text)));
  read = name === "attend" ? controls.attend(state) : controls.ask(name, state);
}

// ---------------------------------------------------------------- asking

// A sentence and its mechanisms stand in the address, so that they can be sent to somebody.
function remember({ task: name, body }) {
  const said = new URLSearchParams({ task: name, text: body.text });
  for (const [key, value] of Object.entries(body)) {
    if (key === "mechanisms") value.forEach((pair, i) => { said.set(`score${i ? i + 1 : ""}`, pair.score); said.set(`normalizer${i ? i + 1 : ""}`, pair.normalizer); });
    else if (["mask", "width", "seed", "model", "to"].includes(key)) said.set(key, value);
  }
  window.history.replaceState(null, "", `?${said}${window.location.hash}`);
}

/** What the view remembers of one answer is kept for the next one, as far as it means the same there. */
function forget(all) {
  const kept = new URLSearchParams(), said = new URLSearchParams(window.location.hash.slice(1));
  if (!all) for (const key of ["view", "scale"]) if (said.has(key)) kept.set(key, said.get(key));
  window.history.replaceState(null, "", `${window.location.pathname}${window.location.search}${kept.size ? `#${kept}` : ""}`);
}

async function submit() {
  const name = task(), body = { text: find("text").value, ...read() };
  running?.abort();
  const mine = (running = new AbortController());
  find("error").textContent = "";
  find("status").textContent = "working …";
  document.body.classList.add("waiting");
  try {
    const found = await (await ask(`/api/${name}`, body, mine.signal)).json();
    if (running !== mine) return;
    const count = latest?.body.mechanisms?.length;
    if (latest) forget(latest.task !== name || count !== body.mechanisms?.length);
    latest = { task: name, body };
    remember(latest);
    find("answer").replaceChildren(...(name === "attend" ? [] : told(name, found)));
    await draw(name === "attend" ? found : found.attention);
    find("status").textContent = "";
  } catch (problem) {
    if (running !== mine || problem.name === "AbortError") return;
    find("status").textContent = "";
    find("error").textContent = problem instanceof TypeError ? "the server does not answer; is regard serve still running?" : problem.message;
  } finally {
    if (running === mine) document.body.classList.remove("waiting");
  }
}

async function draw(payload) {
  find("exports").hidden = !payload;
  if (!payload) {
    shown = null;
    find("view").replaceChildren();
    return;
  }
  const place = el("div");
  payload.theme = document.documentElement.classList.contains("dark") ? "dark" : "light";
  find("view").replaceChildren(place);
  shown = await mount(place, payload);
  // The page has one switch between light and dark, and the view follows it.
  const plain = new CSSStyleSheet();
  plain.replaceSync("#theme { display: none; }");
  place.shadowRoot.adoptedStyleSheets.push(plain);
  place.dataset.ready = "yes";
}

/** An answer in words. */
function told(name, found) {
  const bars = (entries) => el("ol", { class: "bars" }, entries.map(([text, p]) => {
    const bar = el("i");
    bar.style.setProperty("width", `${Math.max(100 * p, 0.5)}%`);
    return el("li", {}, word(text), bar, el("span", {}, percent(p)));
  }));
  const doubts = [];
  if (found.unknown.length) doubts.push(`Training never saw: ${found.unknown.join(", ")}.`);
  if (found.cut) doubts.push("The text was longer than the model reads; its end was left out.");
  const doubt = doubts.length ? el("p", { class: "quiet", dir: "auto" }, doubts.join(" ")) : "";
  const others = (found.others || []).map((o) => [o.output, o.confidence]);
  if (name === "tag") return [el("div", { class: "words" }, found.words.map((w) => el("span", { title: percent(w.confidence) }, word(w.word), el("small", {}, w.tag)))), doubt];
  if (name === "classify") return [bars([[found.output, found.confidence], ...others].slice(0, 8)), doubt];
  const output = el("p", { class: "said", dir: "auto", lang: latest.body.to }, found.output || "–");
  if (name === "fill") return [output, found.blanks.map((blank) => bars(blank.map((c) => [c.word, c.confidence]))), doubt].flat();
  return [output, others.length ? bars([[found.output, found.confidence], ...others]) : el("p", { class: "quiet" }, `confidence ${percent(found.confidence)}`), doubt];
}

async function keep(form) {
  const dark = document.documentElement.classList.contains("dark");
  try {
    const answer = await ask(`/api/${latest.task}?as=${form}&theme=${dark ? "dark" : "light"}`, latest.body);
    const link = el("a", { href: URL.createObjectURL(await answer.blob()), download: `regard.${form === "weights" ? "json" : form}` });
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
  } catch (problem) {
    find("error").textContent = problem.message;
  }
}

// ---------------------------------------------------------------- light and dark

function paint(dark) {
  document.documentElement.classList.toggle("dark", dark);
  find("theme").textContent = dark ? "Light" : "Dark";
  find("theme").setAttribute("aria-pressed", String(dark));
  shown?.set({ theme: dark ? "dark" : "light" });
}

// ---------------------------------------------------------------- begin

async function begin() {
  const system = window.matchMedia("(prefers-color-scheme: dark)");
  paint(system.matches);
  system.addEventListener("change", () => paint(system.matches));
  find("theme").addEventListener("click", () => paint(!document.documentElement.classList.contains("dark")));
  const [mechanisms, models] = await Promise.all(["/api/mechanisms", "/api/models"].map(async (path) => (await ask(path)).json()));
  known = { ...mechanisms, models };
  const given = Object.fromEntries(new URLSearchParams(window.location.search));
  const state = { ...START, ...given };
  if (!Object.hasOwn(TASKS, state.task) || !able(state.task)) state.task = "attend";
  find("tasks").append(...Object.entries(TASKS).map(([name, { name: label }]) =>
    el("label", {},
      el("input", { type: "radio", name: "task", value: name, checked: name === state.task, disabled: !able(name) }), el("span", {}, label))));
  const lacking = Object.keys(TASKS).filter((name) => !able(name)).map((name) => TASKS[name].name);
  find("lacking").hidden = !lacking.length;
  find("lacking").append(`No model is here for ${lacking.join(", ")}: `, el("code", {}, "regard train"), " makes one, ", el("code", {}, "regard serve --model NAME=FOLDER"), " brings it.");
  find("tasks").addEventListener("change", () => {
    prepare(task());
    if (Object.values(TASKS).some(({ examples }) => examples.includes(find("text").value))) find("text").value = TASKS[task()].examples[0];
    find("answer").replaceChildren();
    draw(null);
    submit();
  });
  find("text").value = state.text;
  prepare(state.task, state);
  find("exports").replaceChildren(el("span", { class: "quiet" }, "Save as"), ...Object.entries(FORMS).map(([form, label]) => el("button", { type: "button", id: `save-${form}`, onclick: () => keep(form) }, label)));
  find("form").addEventListener("submit", (event) => { event.preventDefault(); submit(); });
  find("text").addEventListener("keydown", (event) => { if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) { event.preventDefault(); submit(); } });
  find("controls").addEventListener("change", () => { if (task() === "attend") submit(); });  // quick enough to follow
  await submit();
  document.body.dataset.ready = "yes";
}

begin().catch((problem) => { find("error").textContent = problem.message; });
