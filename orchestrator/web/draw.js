// Small parts that all pages draw with. Text becomes text nodes, never markup: a log is a stranger's.

export const $ = (id) => document.getElementById(id);

export function element(name, attributes = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (value === true) made.setAttribute(key, "");
    else if (value !== false && value != null) made.setAttribute(key, value);
  }
  made.append(...children.filter((child) => child != null));
  return made;
}

export function showFault(fault) {
  $("fault").textContent = fault ? fault.message : "";
  $("fault").hidden = !fault;
}

export function duration(seconds) {
  if (seconds == null) return "";
  if (seconds < 10) return `${seconds.toFixed(1)} s`;
  if (seconds < 120) return `${Math.round(seconds)} s`;
  return `${Math.floor(seconds / 60)} min ${Math.round(seconds % 60)} s`;
}

export function size(bytes) {
  if (bytes < 10_000) return `${bytes} B`;
  if (bytes < 10_000_000) return `${Math.round(bytes / 1000)} kB`;
  return `${(bytes / 1e6).toFixed(1)} MB`;
}

export const moment = (text) => new Date(text).toLocaleString();

export const secondsBetween = (from, to) => (from ? ((to ? new Date(to) : new Date()) - new Date(from)) / 1000 : null);

export const stateOf = (build) => build.outcome ?? (build.state === "running" ? build.stage : build.state);

export function showBadge(badge, build) {
  badge.textContent = stateOf(build).replace("_", " ");
  badge.className = `badge ${build.outcome ?? build.state}`;
}

// ANSI colours (SGR) of a line as spans; every other escape sequence is left out.
export function coloured(line) {
  const parts = [];
  let classes = "";
  let at = 0;
  for (const match of line.matchAll(/\x1b(?:\[([\d;?]*)([A-Za-z])|\][^\x07\x1b]*(?:\x07|\x1b\\)|[@-Z\\-_])/g)) {
    add(line.slice(at, match.index));
    at = match.index + match[0].length;
    if (match[2] === "m") classes = nextClasses(classes, match[1]);
  }
  add(line.slice(at));
  return parts;

  function add(text) {
    if (text) parts.push(classes ? element("span", { class: classes }, text) : text);
  }
}

function nextClasses(classes, codes) {
  let next = classes.split(" ").filter(Boolean);
  for (const code of (codes || "0").split(";").map(Number)) {
    if (code === 0) next = [];
    else if (code === 1) next = [...next, "bold"];
    else if (code === 22) next = next.filter((name) => name !== "bold");
    else if (code === 39) next = next.filter((name) => !name.startsWith("c"));
    else if ((code >= 30 && code <= 37) || (code >= 90 && code <= 97)) {
      next = [...next.filter((name) => !name.startsWith("c")), `c${code >= 90 ? code - 60 : code}`];
    }
  }
  return next.join(" ");
}
