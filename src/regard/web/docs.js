// The API's documentation, written from /openapi.json by the server itself: nothing is loaded from elsewhere.

function el(tag, props = {}, ...kids) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(props)) if (value != null) node.setAttribute(name, value);
  node.append(...kids.flat().filter((kid) => kid != null && kid !== ""));
  return node;
}

const schema = await (await fetch("/openapi.json")).json();
const named = (x) => (x && x.$ref ? x.$ref.split("/").slice(1).reduce((at, key) => at[key], schema) : x);

/** A type in few words: number from 0 to 10, one of …, list of … */
function typeOf(given) {
  const x = named(given);
  if (!x) return "";
  if (x.anyOf) return x.anyOf.map(typeOf).filter((t) => t !== "null").join(" or ") + (x.anyOf.some((t) => t.type === "null") ? ", or null" : "");
  if (x.enum) return `one of ${x.enum.join(", ")}`;
  if (x.type === "array") return `list of ${typeOf(x.items) || "values"}${x.maxItems ? `, at most ${x.maxItems}` : ""}`;
  if (x.type === "object" && x.properties) return `{ ${Object.keys(x.properties).join(", ")} }`;
  const low = x.minimum ?? x.exclusiveMinimum, high = x.maximum ?? x.exclusiveMaximum, bounds = [];
  if (low != null) bounds.push(x.exclusiveMinimum != null ? `above ${low}` : `from ${low}`);
  if (high != null) bounds.push(`to ${high}`);
  if (x.maxLength) bounds.push(`of at most ${x.maxLength} characters`);
  return [x.type, ...bounds].filter(Boolean).join(" ");
}

function table(caption, rows) {
  return rows.length ? el("table", {}, el("caption", { class: "quiet" }, caption), el("tbody", {}, rows.map(([name, ...cells]) => el("tr", {}, el("th", { scope: "row" }, el("code", {}, name)), cells.map((cell) => el("td", {}, cell)))))) : "";
}

function fields(given) {
  const x = named(given);
  return Object.entries(x?.properties || {}).map(([name, field]) => {
    const inner = named(field), about = [field.description || inner.description, inner.examples ? `such as ${JSON.stringify(inner.examples[0])}` : null];
    return [name, typeOf(field), x.required?.includes(name) ? "required" : field.default === undefined ? "" : `else ${JSON.stringify(field.default)}`, about.filter(Boolean).join(" ")];
  });
}

function example(method, path, body) {
  const sent = body ? { [Object.keys(body.properties)[0]]: body.properties.text.examples[0] } : null;
  const base = window.location.origin;
  return el("pre", {}, el("code", {}, sent ? `curl ${base}${path} -H 'content-type: application/json' \\\n  -d '${JSON.stringify(sent)}'` : `curl ${base}${path}`));
}

function operation(path, method, x) {
  const body = named(x.requestBody?.content["application/json"]?.schema);
  return el("section", {}, el("h2", { id: path.slice(5) }, el("b", {}, method.toUpperCase()), path), el("p", {}, x.description || x.summary || ""),
    example(method, path, body),
    table("In the address", (x.parameters || []).map((p) => [p.name, typeOf(p.schema), p.schema.default === undefined ? "" : `else ${p.schema.default}`, p.description || ""])),
    body ? table("In the body, as JSON", fields(body)) : "",
    el("p", { class: "quiet" }, `Answers ${Object.keys(x.responses["200"].content).join(", ")}`));
}

/** What any of them may answer instead. */
const refusals = new Map(Object.values(schema.paths).flatMap((methods) => Object.values(methods).flatMap((x) => Object.entries(x.responses))).filter(([code]) => code !== "200"));

document.getElementById("api").replaceChildren(
  el("p", {}, schema.info.description, " Requests come from this server's own page or from programs on this machine; a page of another site is refused."),
  ...Object.entries(schema.paths).flatMap(([path, methods]) => Object.entries(methods).map(([method, x]) => operation(path, method, x))),
  el("section", {}, el("h2", {}, "Refusals"), el("p", {}, "One line of JSON says what came, what was expected and the cure: ", el("code", {}, '{"error": "…"}')), table("By status", [...refusals].sort().map(([code, answer]) => [code, answer.description]))));
document.documentElement.classList.toggle("dark", window.matchMedia("(prefers-color-scheme: dark)").matches);
