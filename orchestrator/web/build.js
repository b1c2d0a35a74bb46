// The page of one build: what it is doing, what failed and where, what it made, and its log.

import { ask, follow, get, post, save } from "/static/api.js";
import { $, duration, element, moment, secondsBetween, showBadge, showFault, size, stateOf } from "/static/draw.js";
import { LogView } from "/static/log_view.js";

const id = decodeURIComponent(location.pathname.split("/")[2] ?? "");
const at = `/v1/builds/${encodeURIComponent(id)}`;
const REFRESH_MS = 250;
const SHOWN_TASKS = 15;

const log = new LogView($("log"), (first, count) => get(`${at}/log/lines?first=${first}&count=${count}`), showFault);
let hits = [];
let hit = -1;

async function showBuild() {
  const build = await get(at);
  const run = build.runs.at(-1);
  document.title = `${stateOf(build)}: ${build.project} – Pocketbuild`;
  $("name").textContent = `${build.project} ${build.tasks.join(" ")}`;
  showBadge($("badge"), build);
  const told = [
    id,
    `asked for ${moment(build.created)} by ${build.owner}`,
    run && `phone ${run.phone}${run.route ? ` (${run.route})` : ""}`,
    build.attempt > 1 && `attempt ${build.attempt}`,
    build.started && `${build.finished ? "took" : "running for"} ${duration(secondsBetween(build.started, build.finished))}`,
    build.exit_code != null && `exit code ${build.exit_code}`,
    build.args.join(" "),
  ];
  $("facts").textContent = told.filter(Boolean).join(" · ");
  $("reason").textContent = [build.cause, build.reason].filter(Boolean).join(": ");
  $("reason").hidden = !$("reason").textContent;
  $("cancel").hidden = build.state === "finished";
  $("cancel").disabled = build.is_cancel_asked;
  $("retry").hidden = build.state !== "finished";
  showStages(run?.stage_s ?? {});
  showArtifacts(build.artifacts);
  return build;
}

function showStages(seconds) {
  const stages = Object.entries(seconds).filter(([, spent]) => spent > 0);
  $("stages").hidden = stages.length === 0;
  $("stages").replaceChildren(...stages.map(([name, spent], number) => {
    const part = element("span", { class: `stage s${number % 6}`, title: `${name}: ${duration(spent)}` }, `${name} ${duration(spent)}`);
    part.style.flexGrow = spent * 1000;
    return part;
  }));
}

function showArtifacts(artifacts) {
  $("artifacts-part").hidden = artifacts.length === 0;
  $("artifacts").replaceChildren(...artifacts.map((artifact) => {
    const name = artifact.path.split("/").at(-1);
    const button = element("button", {}, `Save ${name}`);
    button.addEventListener("click", () => save(`${at}/artifacts/${artifact.number}`, name).catch(showFault));
    return element("tr", {},
      element("td", {}, button),
      element("td", {}, [artifact.kind, artifact.variant].filter(Boolean).join(" ")),
      element("td", { class: "number" }, size(artifact.size_bytes)),
      element("td", { class: "path", title: artifact.sha256 }, artifact.path));
  }));
}

async function showDigest() {
  const { text, digest } = await get(`${at}/digest`);
  $("digest").textContent = text;
  const causes = digest.causes ?? [];
  $("causes-part").hidden = false;
  $("causes-title").textContent = causes.length ? "What failed" : "Digest";
  $("causes").replaceChildren(...causes.map(causeItem));
  $("advice").replaceChildren(...(digest.advice ?? []).map((line) => element("li", {}, line)));
  const line = causes.find((cause) => cause.log_line)?.log_line;
  $("first-error").hidden = !line;
  $("first-error").onclick = () => goTo(line);
}

function causeItem(cause) {
  const place = [cause.path ?? cause.file, cause.line, cause.column].filter((part) => part != null).join(":");
  const source = (cause.source ?? []).map(({ line, text }) =>
    element("div", { class: line === cause.line ? "target" : "" }, `${String(line).padStart(5)}  ${text}`));
  const after = cause.followers?.length ?? 0;
  return element("li", {},
    element("span", { class: "tool" }, cause.tool), " ",
    place ? element("strong", {}, place) : null, place ? " " : null,
    element("span", { class: "message" }, cause.message),
    cause.log_line ? element("a", { href: `#L${cause.log_line}` }, ` log line ${cause.log_line}`) : null,
    after ? element("span", { class: "quiet" }, ` · ${after} more follow from it`) : null,
    source.length ? element("pre", { class: "source" }, ...source) : null);
}

async function showTasks() {
  const events = await get(`${at}/events`);
  const timed = events.tasks.filter((task) => task.duration_s != null);
  const slowest = timed.toSorted((one, other) => other.duration_s - one.duration_s).slice(0, SHOWN_TASKS);
  const longest = slowest[0]?.duration_s || 1;
  $("tasks-part").hidden = events.tasks.length === 0;
  const count = (wanted) => events.tasks.filter((task) => wanted.includes(task.outcome)).length;
  $("tasks-told").textContent = [
    `${events.tasks.length} tasks`, `${count(["UP-TO-DATE", "FROM-CACHE"])} up to date`, `${count(["FAILED"])} failed`,
    events.gradle && `Gradle ${events.gradle}`,
    timed.length > slowest.length && `the slowest ${slowest.length} of them:`].filter(Boolean).join(" · ");
  $("tasks").replaceChildren(...slowest.map((task) => {
    const bar = element("span", { class: `bar-part ${task.outcome === "FAILED" ? "failed" : ""}` });
    bar.style.width = `${Math.max(0.5, (100 * task.duration_s) / longest)}%`;
    return element("tr", {},
      element("td", { class: "path" }, task.path), element("td", {}, task.outcome),
      element("td", { class: "number" }, duration(task.duration_s)), element("td", { class: "wide" }, bar));
  }));
}

async function showEnd() {
  await showBuild();
  await Promise.all([showDigest(), showTasks()].map((shown) => shown.catch((fault) => {
    // A build that ended before Gradle did has no digest or events; all that is known stands above.
    if (!["no_events", "no_digest"].includes(fault.code)) throw fault;
  })));
}

async function followBuild(build) {
  let isOver = build.state === "finished";
  let offset = build.runs.at(-1)?.log_size_bytes ?? 0;
  let wantsRefresh = false;
  const timer = setInterval(() => {
    if (!wantsRefresh) return;
    wantsRefresh = false;
    log.refresh($("follow").checked);
  }, REFRESH_MS);
  while (!isOver) {
    try {
      await follow(`${at}/log/live?offset=${offset}`, (name, _, eventId) => {
        offset = eventId?.split("@")[0] ?? offset;
        if (name === "end") isOver = true;
        if (name === "state") showBuild().catch(showFault);
        wantsRefresh = true;
      });
      showFault(null);
    } catch (fault) {
      showFault(fault);
    }
    if (!isOver) await new Promise((resolve) => setTimeout(resolve, 1000));
  }
  clearInterval(timer);
  await log.refresh($("follow").checked);
  await showEnd();
}

async function goTo(line) {
  $("follow").checked = false;
  history.replaceState(null, "", `#L${line}`);
  $("log-part").scrollIntoView({ block: "nearest" });
  await log.go(line - 1);
}

async function showHash() {
  const line = Number(/^#L(\d+)$/.exec(location.hash)?.[1]);
  if (line) await goTo(line);
}

async function search(pattern) {
  const found = pattern ? await get(`${at}/log/search?max_hits=1000&pattern=${encodeURIComponent(pattern)}`) : { lines: [], hits: 0 };
  hits = found.lines;
  hit = -1;
  $("next").disabled = $("previous").disabled = hits.length === 0;
  $("hits").textContent = pattern ? `${found.hits} lines` : "";
  await log.mark(hits);
  if (hits.length) await step(1);
}

async function step(by) {
  hit = (hit + by + hits.length) % hits.length;
  $("hits").textContent = `${hit + 1} of ${hits.length}`;
  await goTo(hits[hit] + 1);
}

async function act(button, verb) {
  button.disabled = true;
  try {
    const answer = await post(`${at}/${verb}`);
    if (answer.id !== id) location.assign(`/builds/${encodeURIComponent(answer.id)}`);
    else await showBuild();
  } catch (fault) {
    showFault(fault);
    button.disabled = false;
  }
}

$("cancel").addEventListener("click", () => act($("cancel"), "cancel"));
$("retry").addEventListener("click", () => act($("retry"), "retry"));
$("next").addEventListener("click", () => step(1));
$("previous").addEventListener("click", () => step(-1));
$("search").addEventListener("submit", (event) => {
  event.preventDefault();
  search(new FormData(event.target).get("pattern")).catch(showFault);
});
$("plain").href = `${at}/log`;
$("plain").addEventListener("click", async (event) => {
  event.preventDefault();
  const text = await (await ask(`${at}/log`)).text().catch(showFault);
  if (text != null) location.assign(URL.createObjectURL(new Blob([text], { type: "text/plain;charset=utf-8" })));
});
window.addEventListener("hashchange", showHash);

try {
  const build = await showBuild();
  $("follow").checked = build.state !== "finished" && !location.hash;
  await log.refresh($("follow").checked);
  await showHash();
  document.body.dataset.ready = "yes";
  await followBuild(build);
  document.body.dataset.ended = "yes";
} catch (fault) {
  showFault(fault);
}
