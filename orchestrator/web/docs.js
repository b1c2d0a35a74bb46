// The API for readers: every operation of /openapi.json, to be searched, opened and copied as a command.

import { get, hasToken, save } from "/static/api.js";
import { $, element, showFault } from "/static/draw.js";
import { bodyOf, curl, exampleOf, paragraphs, rowsOf, typeOf } from "/static/schema.js";

const drawn = [];

function operationsOf(api) {
  return Object.entries(api.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({ path, method: method.toUpperCase(), ...operation })));
}

function parameterTable(api, parameters) {
  return element("table", { class: "fields" },
    element("tbody", {}, ...parameters.map(({ name, in: place, required, schema, description }) => element("tr", {},
      element("td", {}, element("code", {}, name), required ? element("strong", {}, " needed") : null),
      element("td", {}, place),
      element("td", {}, typeOf(api, schema)),
      element("td", {}, description ?? schema.description ?? "")))));
}

function schemaTable(api, schema) {
  const rows = rowsOf(api, schema);
  if (!rows.length) return element("p", {}, typeOf(api, schema));
  return element("table", { class: "fields" }, element("tbody", {}, ...rows.map((row) => element("tr", {},
    element("td", { class: `depth${row.depth}` }, element("code", {}, row.name), row.isNeeded ? element("strong", {}, " needed") : null),
    element("td", {}, row.type),
    element("td", {}, row.description)))));
}

function copied(text) {
  const button = element("button", { class: "copy" }, "Copy");
  const pre = element("pre", {}, text);
  button.addEventListener("click", async () => {
    // Away from loopback a page without TLS has no clipboard: then the text is marked to be copied by hand.
    try {
      await navigator.clipboard.writeText(text);
      button.textContent = "Copied";
    } catch {
      getSelection().selectAllChildren(pre);
      button.textContent = "Marked";
    }
  });
  return element("div", { class: "copied" }, button, pre);
}

function contentBlock(api, content) {
  return Object.entries(content).flatMap(([kind, { schema }]) => {
    const example = schema && kind.endsWith("json") ? exampleOf(api, schema) : undefined;
    return [
      element("p", { class: "quiet" }, kind),
      schema ? schemaTable(api, schema) : null,
      example === undefined ? null : element("pre", {}, JSON.stringify(example, null, 2)),
    ];
  });
}

function responseBlock(api, [status, { description, content }]) {
  return element("details", {},
    element("summary", {}, element("code", {}, status === "default" ? "else" : status), ` ${description ?? ""}`),
    ...contentBlock(api, content ?? {}));
}

function fill(api, operation) {
  const body = bodyOf(operation);
  const parameters = operation.parameters ?? [];
  return [
    ...paragraphs(operation.description).map((text) => element("p", {}, text)),
    ...(parameters.length ? [element("h3", {}, "Parameters"), parameterTable(api, parameters)] : []),
    ...(body ? [element("h3", {}, "Body"), ...contentBlock(api, operation.requestBody.content)] : []),
    element("h3", {}, "Command"),
    copied(curl(api, operation, location.origin, hasToken())),
    element("h3", {}, "Answers"),
    ...Object.entries(operation.responses).map((each) => responseBlock(api, each)),
  ];
}

function draw(api, operation) {
  const link = element("a", { href: `#${operation.operationId}`, "aria-label": `address of ${operation.operationId}` }, "#");
  const box = element("details", { class: "operation", id: operation.operationId },
    element("summary", {},
      element("span", { class: `method ${operation.method}` }, operation.method),
      element("code", {}, operation.path), ` ${operation.summary} `, link));
  box.addEventListener("toggle", () => {
    if (box.open && box.childElementCount === 1) box.append(...fill(api, operation).filter(Boolean));
  });
  const words = [operation.method, operation.path, operation.operationId, operation.summary, operation.description,
    ...(operation.parameters ?? []).map((parameter) => parameter.name)].join(" ").toLowerCase();
  drawn.push({ box, words });
  return box;
}

function find() {
  const wanted = $("find").value.toLowerCase().split(/\s+/).filter(Boolean);
  let count = 0;
  for (const { box, words } of drawn) {
    box.hidden = !wanted.every((word) => words.includes(word));
    count += box.hidden ? 0 : 1;
  }
  for (const section of $("operations").children) section.hidden = !section.querySelector(".operation:not([hidden])");
  $("found").textContent = wanted.length ? `${count} of ${drawn.length}` : "";
}

function openNamed() {
  const box = $(decodeURIComponent(location.hash.slice(1)));
  if (!box?.matches(".operation")) return;
  box.open = true;
  box.scrollIntoView();
}

try {
  const api = await get("/openapi.json");
  const operations = operationsOf(api);
  const tags = [...new Set(operations.map((operation) => operation.tags?.[0] ?? "more"))];
  $("version").textContent = api.info.version;
  $("told").textContent = `${api.info.summary} ${operations.length} operations; all errors are problem+json.`;
  $("operations").append(...tags.map((tag) => element("section", {}, element("h2", {}, tag),
    ...operations.filter((operation) => (operation.tags?.[0] ?? "more") === tag).map((each) => draw(api, each)))));
  $("find").addEventListener("input", find);
  $("document").addEventListener("click", () => save("/openapi.json", "openapi.json"));
  addEventListener("hashchange", openNamed);
  openNamed();
} catch (fault) {
  showFault(fault);
}
document.body.dataset.ready = "yes";
