// The service's own API, as the pages use it. A token, where one is wanted, stays in this tab.

const KEY = "pocketbuild-token";

export class Refused extends Error {
  constructor(problem) {
    super([problem.detail ?? problem.title, problem.hint].filter(Boolean).join(" "));
    this.code = problem.code;
  }
}

// Ask for something; a service that wants a token has the person asked for one.
export async function ask(path, options = {}) {
  for (;;) {
    const token = sessionStorage.getItem(KEY);
    const headers = { ...options.headers, ...(token ? { authorization: `Bearer ${token}` } : {}) };
    const answer = await fetch(path, { ...options, headers });
    if (answer.ok) return answer;
    if (answer.status === 401) {
      sessionStorage.removeItem(KEY);
      const given = await askForToken();
      sessionStorage.setItem(KEY, given);
      continue;
    }
    throw new Refused(await answer.json().catch(() => ({ title: `The service answered ${answer.status}.` })));
  }
}

export const hasToken = () => sessionStorage.getItem(KEY) !== null;
export const get = async (path) => (await ask(path)).json();
export const post = async (path) => (await ask(path, { method: "POST" })).json();

// Read server-sent events until the stream ends; `onEvent(name, data, id)` hears each.
export async function follow(path, onEvent) {
  const answer = await ask(path, { headers: { accept: "text/event-stream" } });
  const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    const blocks = (rest + value).split("\n\n");
    rest = blocks.pop();
    for (const block of blocks) {
      const fields = Object.fromEntries(block.split("\n").map((line) => {
        const at = line.indexOf(":");
        return [line.slice(0, at), line.slice(at + 1).trimStart()];
      }));
      if (fields.data) onEvent(fields.event ?? "message", JSON.parse(fields.data), fields.id);
    }
  }
}

// A link does not carry a token, so content is fetched here and handed to the browser as a file.
export async function save(path, name) {
  const url = URL.createObjectURL(await (await ask(path)).blob());
  const link = Object.assign(document.createElement("a"), { href: url, download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(url), 60_000);
}

let asked = null;

function askForToken() {
  asked ??= new Promise((resolve) => {
    const dialog = document.createElement("dialog");
    const form = document.createElement("form");
    const label = document.createElement("label");
    const input = Object.assign(document.createElement("input"), { type: "password", required: true, name: "token" });
    const button = Object.assign(document.createElement("button"), { textContent: "Go on" });
    label.append("This service wants a token (pocketbuild token create): ", input);
    form.append(label, button);
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      dialog.remove();
      asked = null;
      resolve(input.value.trim());
    });
    dialog.addEventListener("cancel", (event) => event.preventDefault());
    dialog.append(form);
    document.body.append(dialog);
    dialog.showModal();
  });
  return asked;
}
