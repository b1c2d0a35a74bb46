// What the service is doing: its phones and its builds, looked at again every few seconds.

import { get } from "/static/api.js";
import { $, duration, element, moment, secondsBetween, showBadge, showFault, size } from "/static/draw.js";

const EVERY_MS = 3000;
const FIRST = 50;
let shown = FIRST;

function phoneRow(phone) {
  const offers = phone.contract ?? {};
  const state = phone.state === "online" && phone.resting ? "rests" : phone.state;
  const reason = phone.reason ?? (state === "rests" ? phone.resting : null);
  return element("tr", {},
    element("td", {}, phone.serial ?? phone.address),
    element("td", {}, element("span", { class: `badge ${phone.state}` }, state), reason ? ` ${reason}` : null),
    element("td", {}, phone.build ? element("a", { href: `/builds/${encodeURIComponent(phone.build)}` }, phone.build) : phone.is_busy ? "busy" : ""),
    element("td", {}, healthText(phone.health ?? {})),
    element("td", {}, ["jdk", "gradle"].filter((name) => offers[name]).map((name) => `${name} ${offers[name]}`).join(" · ")));
}

function healthText(health) {
  return [
    health.battery_percent != null && `battery ${health.battery_percent} %${health.is_charging ? ", charging" : ""}`,
    health.heat_celsius != null && `${Math.round(health.heat_celsius)} °C`,
    health.thermal_status > 0 && `thermal status ${health.thermal_status} of 6`,
    health.free_bytes != null && `${size(health.free_bytes)} free`,
  ].filter(Boolean).join(" · ");
}

function buildRow(build) {
  const badge = element("span");
  showBadge(badge, build);
  const told = build.state === "queued" && build.reason ? ` ${build.reason}` : null;
  return element("tr", {},
    element("td", {}, element("a", { href: `/builds/${encodeURIComponent(build.id)}` }, build.id)),
    element("td", {}, build.project),
    element("td", {}, build.tasks.join(" ")),
    element("td", {}, badge, told),
    element("td", {}, moment(build.created)),
    element("td", { class: "number" }, duration(secondsBetween(build.started, build.finished))));
}

async function pages(query) {
  const found = [];
  let cursor = "";
  while (found.length < shown) {
    const page = await get(`/v1/builds?limit=${Math.min(200, shown - found.length)}&${query}${cursor && `&cursor=${encodeURIComponent(cursor)}`}`);
    found.push(...page.builds);
    cursor = page.next;
    if (!cursor) break;
  }
  return { found, hasMore: Boolean(cursor) };
}

async function look() {
  const wanted = [...new FormData($("filter"))].filter(([, value]) => value);
  try {
    const [{ phones }, { found, hasMore }] = await Promise.all([get("/v1/phones"), pages(new URLSearchParams(wanted))]);
    $("phones").replaceChildren(...(phones.length ? phones.map(phoneRow) : [emptyRow(5, "No phone is known yet: pocketbuild serve --device …")]));
    $("builds").replaceChildren(...(found.length ? found.map(buildRow) : [emptyRow(6, "No build yet: pocketbuild build DIR")]));
    $("more").hidden = !hasMore;
    showFault(null);
  } catch (fault) {
    showFault(fault);
  }
  document.body.dataset.ready = "yes";
}

const emptyRow = (columns, text) => element("tr", {}, element("td", { colspan: columns, class: "quiet" }, text));

$("filter").addEventListener("input", look);
$("filter").addEventListener("submit", (event) => event.preventDefault());
$("more").addEventListener("click", () => {
  shown += FIRST;
  look();
});
for (;;) {
  if (!document.hidden) await look();
  await new Promise((resolve) => setTimeout(resolve, EVERY_MS));
}
