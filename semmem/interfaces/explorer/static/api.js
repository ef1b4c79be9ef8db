// The documented HTTP API, and what the views share of it: errors as sentences, pages of memories, the place in the URL.

export class Problem extends Error {
  constructor(status, told) {
    super(told.detail || `The server answered with status ${status}.`);
    this.status = status;
    this.kind = told.class || "";
  }
}

export function address(path, query) {
  const search = new URLSearchParams();
  for (const [name, value] of Object.entries(query))
    for (const one of Array.isArray(value) ? value : [value])
      if (one !== undefined && one !== null && one !== "") search.append(name, one);
  return path + (search.size ? `?${search}` : "");
}

// Sessions that began in this page: a request that was refused because an earlier one had ended is asked again in that of now.
let begun = 0;
window.addEventListener("signed-in", () => { begun += 1; });

// The name of the key that opened this page. The server refuses what the page sends in a session of somebody else, such as one that began in another tab.
let opener = null;
export const openedBy = (name) => { opener = name; };

export async function call(method, path, { query = {}, body, headers = {}, signal } = {}) {
  const options = { method, headers: { accept: "application/json", ...headers }, signal, credentials: "same-origin" };
  if (body !== undefined) {
    options.body = typeof body === "string" ? body : JSON.stringify(body);
    options.headers["content-type"] ??= "application/json";
  }
  if (opener && path !== "/session") options.headers["semmem-key-name"] = encodeURIComponent(opener);
  const session = begun;
  let answer;
  try {
    answer = await fetch(address(path, query), options);
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Problem(0, { detail: "The server does not answer. Start it again, or check the connection, and repeat." });
  }
  const text = await answer.text();
  if (answer.ok) {
    const [value, warning] = [text ? JSON.parse(text) : null, answer.headers.get("semmem-warning")];
    return warning ? { ...value, warning } : value;
  }
  let told = {};
  try {
    told = JSON.parse(text);
  } catch {
    // an answer of something between the page and the server
  }
  if (answer.status === 401 && session !== begun) return call(method, path, { query, body, headers, signal });
  if (answer.status === 401) window.dispatchEvent(new Event("signed-out"));
  throw new Problem(answer.status, told);
}

const of = (id) => `/v1/memories/${encodeURIComponent(id)}`;

export const api = {
  runs: () => call("GET", "/runs").then((answer) => answer.runs),
  runFile: (name, file) => fetch(`/runs/${encodeURIComponent(name)}/${file}`, { credentials: "same-origin" }).then((answer) => (answer.ok ? answer.blob() : null)),
  session: () => call("GET", "/session"),
  signIn: (key) => call("POST", "/session", { headers: { authorization: `Bearer ${key}` } }),
  signOut: () => call("DELETE", "/session"),
  version: () => call("GET", "/healthz"),
  ready: () => call("GET", "/readyz"),
  namespaces: () => call("GET", "/v1/namespaces").then((answer) => answer.namespaces),
  stats: (namespace) => call("GET", "/v1/stats", { query: { namespace } }),
  doctor: () => call("GET", "/v1/doctor").then((answer) => answer.findings),
  metrics: () => fetch("/metrics", { credentials: "same-origin" }).then((answer) => (answer.ok ? answer.text() : "")).then(counted),
  limits: (name) => call("GET", `/v1/namespaces/${encodeURIComponent(name)}/limits`),
  settings: (namespace) => call("GET", "/v1/settings", { query: { namespace } }),
  configure: (namespace, changes) => call("PATCH", "/v1/settings", { query: { namespace }, body: changes }),
  unset: (namespace, names) => call("DELETE", "/v1/settings", { query: { namespace, names } }),
  recall: (body, signal) => call("POST", "/v1/recall", { body, signal }),
  withWords: (body, signal) => api.reweigh({ ...body, recipe: { name: "lexical", dedup: false, superseding: false } }, signal),
  reweigh: (body, signal) => call("POST", "/v1/recall/reweigh", { body, signal }),
  paths: (body, signal) => call("POST", "/v1/recall/paths", { body, signal }),
  reach: (body, signal) => call("POST", "/v1/reach", { body, signal }),
  explain: (id, body) => call("POST", `${of(id)}/explain`, { body }),
  list: (query, signal) => call("GET", "/v1/memories", { query, signal }),
  get: (id, namespace) => call("GET", of(id), { query: { namespace } }),
  remember: (memory) => call("POST", "/v1/memories", { body: memory }),
  rememberLines: (namespace, lines) =>
    call("POST", "/v1/memories", { query: { namespace, on_error: "skip" }, body: lines, headers: { "content-type": "application/x-ndjson" } }),
  update: (id, namespace, changes, version) =>
    call("PATCH", of(id), { query: { namespace }, body: changes, headers: version ? { "if-match": `"${version}"` } : {} }),
  forget: (id, namespace, hard) => call("DELETE", of(id), { query: { namespace, hard } }),
  restore: (id, namespace) => call("POST", `${of(id)}/restore`, { body: { namespace } }),
  forgotten: (namespace) => call("GET", "/v1/forgotten", { query: { namespace, limit: 500 } }).then((answer) => answer.versions),
  history: (id, namespace) => call("GET", `${of(id)}/history`, { query: { namespace } }).then((answer) => answer.versions),
  contradictions: (namespace) => call("GET", "/v1/contradictions", { query: { namespace, limit: 200 } }).then((answer) => answer.links),
  nearDuplicates: (namespace) => call("GET", "/v1/near-duplicates", { query: { namespace, limit: 200 } }).then((answer) => answer.links),
  links: (id, namespace) => call("GET", `${of(id)}/links`, { query: { namespace } }).then((answer) => answer.links),
  link: (id, namespace, type, to, made_by) => call("POST", `${of(id)}/links`, { body: { namespace, type, to, ...(made_by ? { made_by } : {}) } }),
  unlink: (id, namespace, type, to) => call("DELETE", `${of(id)}/links`, { query: { namespace, type, to } }),
  graph: (query) => call("GET", "/v1/graph", { query }),
  concepts: (query) => call("GET", "/v1/concepts", { query }).then((answer) => answer.concepts),
  merge: (namespace, a, b) => call("POST", "/v1/concepts/merge", { body: { namespace, a, b } }),
  split: (namespace, name) => call("POST", "/v1/concepts/split", { body: { namespace, name } }),
  feedback: (body) => call("POST", "/v1/feedback", { body }),
};

// The counters of a page as Prometheus reads it: name{label="value",…} number.
const counted = (text) => text.split("\n").filter((line) => line && !line.startsWith("#")).map((line) => {
  const [, name, labels, value] = line.match(/^(\w+)(?:\{(.*)\})? (\S+)/);
  return { name, value: Number(value), labels: Object.fromEntries([...(labels || "").matchAll(/(\w+)="([^"]*)"/g)].map(([, key, one]) => [key, one])) };
});

// The values that the schema of the API names for a parameter of a query.
let schema = null;
export async function choices(path, name) {
  schema ??= call("GET", "/openapi.json").catch((error) => {
    schema = null; // so that the next question asks again
    throw error;
  });
  return (await schema).paths[path].get.parameters.find((one) => one.name === name).schema.enum;
}

export async function* pages(query, most) {
  let cursor;
  for (let read = 0; read < most; ) {
    const page = await api.list({ ...query, limit: Math.min(500, most - read), cursor });
    yield page.memories;
    read += page.memories.length;
    cursor = page.cursor;
    if (!cursor) return;
  }
}

// The last question of this tab, for views that show more of its recall.
let last = null;
export const asked = () => last;
export const note = (ns, q, hits) => { last = { ns, q, hits }; };

// The place: #/view?ns=…&q=…; a view changes it with `go`, and the browser's back button takes a step back.
export function place() {
  const [view, search] = location.hash.replace(/^#\/?/, "").split("?");
  return { view: view || "recall", query: Object.fromEntries(new URLSearchParams(search || "")) };
}

export function go(view, query = {}, { replace = false } = {}) {
  const kept = Object.entries(query).filter(([, value]) => value !== undefined && value !== null && value !== "");
  const hash = `#/${view}?${new URLSearchParams(kept)}`;
  if (replace) {
    history.replaceState(null, "", hash);
    window.dispatchEvent(new HashChangeEvent("hashchange"));
  } else location.hash = hash;
}
