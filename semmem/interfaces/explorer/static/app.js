// The page: the session, the namespace, and the views.
import { html, render, useCallback, useEffect, useLayoutEffect, useRef, useState } from "/page/vendor/preact.js";
import { api, go, openedBy, place } from "/page/api.js";
import { Dialog, Notice, keepFocus, useToast, visible } from "/page/parts.js";
import { RecallView } from "/page/recall.js";
import { MemoryDialog } from "/page/memory.js";

// Views that are not the first thing to see are loaded when they are opened.
const VIEWS = {
  recall: { title: "Recall", load: async () => RecallView },
  browse: { title: "Browse", load: () => import("/page/browse.js").then((module) => module.BrowseView) },
  graph: { title: "Graph", load: () => import("/page/graph.js").then((module) => module.GraphView) },
  time: { title: "Time", load: () => import("/page/browse.js").then((module) => module.TimeView) },
  inbox: { title: "Inbox", load: () => import("/page/browse.js").then((module) => module.InboxView) },
  activity: { title: "Activity", load: () => import("/page/activity.js").then((module) => module.ActivityView) },
  evaluation: { title: "Evaluation", load: () => import("/page/evaluation.js").then((module) => module.EvaluationView) },
  health: { title: "Health", load: () => import("/page/browse.js").then((module) => module.HealthView) },
};

const LOST = "This view could not be loaded. Start the server again, or check the connection, and load the page again.";
const RIGHTS = ["read", "write", "admin"];
const allowed = ({ right }) => Object.fromEntries(RIGHTS.map((one, at) => [one, RIGHTS.indexOf(right) >= at]));

function App() {
  const [session, setSession] = useState(null); // null: not yet known; false: a key is needed
  const [namespaces, setNamespaces] = useState([]);
  const [at, setAt] = useState(place());
  const [ended, setEnded] = useState(false); // the session ended while the page was open: what stands in it stays
  const [error, setError] = useState(null);
  const [memory, setMemory] = useState(null);
  const [naming, setNaming] = useState(false); // of a namespace that holds no memory yet
  const [changed, setChanged] = useState(0);
  const [toast, show] = useToast();
  const [{ of, View }, setView] = useState({}); // the name of the last view that was asked for, and the view unless it could not be loaded
  const person = useRef(null); // whose key the page was opened with, once it is known
  const begin = useCallback(async () => {
    try {
      const told = await api.session();
      if (person.current && person.current.name !== told.name) { // nothing of the first person is shown to another, or sent by them
        history.replaceState(null, "", location.pathname);
        location.reload();
        return;
      }
      person.current = told;
      openedBy(told.name);
      const all = await api.namespaces();
      setNamespaces(told.namespaces || all.map((one) => one.name));
      setSession(told);
      setEnded(false);
      setError(null);
      window.dispatchEvent(new Event("signed-in"));
    } catch (failed) {
      if (failed.status === 401) setSession((before) => before || false);
      else setError(failed);
    }
  }, []);
  useEffect(() => { begin(); }, []);
  useEffect(() => {
    const moved = () => setAt(place());
    const out = () => setEnded(true);
    const failed = (event) => { if (event.reason?.status !== undefined) { show(event.reason.message); event.preventDefault(); } };
    window.addEventListener("hashchange", moved);
    window.addEventListener("signed-out", out);
    window.addEventListener("unhandledrejection", failed);
    return () => {
      window.removeEventListener("hashchange", moved);
      window.removeEventListener("signed-out", out);
      window.removeEventListener("unhandledrejection", failed);
    };
  }, []);
  const name = at.view in VIEWS ? at.view : "recall";
  useLayoutEffect(() => {
    let late = false;
    document.title = `${VIEWS[name].title} · semmem`;
    VIEWS[name].load().then((view) => late || setView({ of: name, View: view }), () => late || setView({ of: name }));
    return () => { late = true; };
  }, [name]);
  if (session === false) return html`<${SignIn} onDone=${begin} />`;
  if (error && !session) return html`<main class="sign"><${Notice} error=${error} /><button onClick=${begin}>Try again</button></main>`;
  if (!session) return html`<p class="hint" role="status">Opening…</p>`;
  const { ns: wanted, ...query } = at.query;
  const ns = wanted || (namespaces.includes("default") ? "default" : namespaces[0]) || "default";
  const listed = namespaces.includes(ns) ? namespaces : [ns, ...namespaces];
  const open = (id, of) => setMemory({ id, ns: of || ns });
  const may = allowed(session);
  return html`
    <a class="skip" href="#main" onClick=${(e) => { e.preventDefault(); document.getElementById("main").focus(); }}>To the content</a>
    <header class="top"><a class="home" href=${`#/recall?ns=${encodeURIComponent(ns)}`}><img src="/page/icon.svg" alt="" width="22" height="22" />semmem</a>
      <nav aria-label="Views">${Object.entries(VIEWS).map(([view, { title }]) => html`<a href=${`#/${view}?ns=${encodeURIComponent(ns)}`} aria-current=${view === name ? "page" : null}>${title}</a>`)}</nav>
      <label class="ns">Namespace<select value=${ns} onChange=${(e) => { if (e.target.value) go(name, { ns: e.target.value, ...(name === "recall" && { q: query.q, limit: query.limit }) }); else { e.target.value = ns; setNaming(true); } }}>${listed.map((one) => html`<option value=${one}>${visible(one)}</option>`)}
        ${!session.namespaces && html`<option value="">a new one…</option>`}</select></label>
      ${session.name && session.name !== "explore" && html`<button class="plain" onClick=${async () => { await api.signOut(); setSession(false); }}>Sign out ${visible(session.name)}</button>`}</header>
    <main id="main" tabindex="-1">${of === name && (View ? html`<${View} key=${name} ...${{ ns, query, openMemory: open, may, toast: show, changed, namespaces }} />` : html`<${Notice} error=${LOST} />`)}</main>
    ${memory && html`<${MemoryDialog} key=${memory.id} ...${{ ...memory, may, toast: show, openMemory: open, onClose: () => setMemory(null), foot: toast, onChange: () => setChanged((count) => count + 1) }} />`}
    ${naming && html`<${Dialog} title="A new namespace" onClose=${() => setNaming(false)}><${NewNamespace} take=${(wanted) => { setNaming(false); go("browse", { ns: wanted }); }} /><//>`}
    ${ended && html`<${Dialog} title="Your session has ended" onClose=${() => setEnded(false)}><${Ended} ...${{ session, begin }} /><//>`}
    ${!memory && toast}`; // while a dialog is open, nothing else can be reached: the sentence stands in it
}

// A session ends after 12 hours without a request, or with its key. What was typed stays, so a form can be sent again.
function Ended({ session, begin }) {
  const again = session.name === "explore" ? html`stop <code>semmem explore</code>, run <code>semmem explore --port ${location.port}</code>, open its link in another tab, and choose Go on here` : "give a key here, or in another tab and choose Go on here";
  return html`<p>It was not used for 12 hours, its key is no longer valid, or somebody else has begun one in another tab. Nothing you typed is lost: ${again}; then repeat the last step. A key of another name begins a new page.</p>
    <${KeyForm} onDone=${begin} />
    <p class="buttons"><button class="second" onClick=${begin}>Go on</button></p>`;
}

function NewNamespace({ take }) {
  const [wanted, setWanted] = useState("");
  return html`<p>A namespace is a wall: no recall of one sees the memories of another. It begins with its first memory, written or imported in Browse.</p>
    <form class="ask" onSubmit=${(e) => { e.preventDefault(); take(wanted.trim()); }}><label class="grow">Its name<input autofocus required pattern=".*\\S.*" value=${wanted} onInput=${(e) => setWanted(e.target.value)} /></label><button>Open</button></form>`;
}

function SignIn({ onDone }) {
  return html`<main class="sign"><h1>semmem</h1>
    <p>This page needs a key. If <code>semmem explore</code> opened it, its link was used already: run the command again. For a server, use a key of <code>semmem keys add</code>.</p>
    <${KeyForm} onDone=${onDone} /></main>`;
}

function KeyForm({ onDone }) {
  const [key, setKey] = useState("");
  const [problem, setProblem] = useState(null);
  const submit = async (event) => {
    event.preventDefault();
    try {
      await api.signIn(key.trim());
      setProblem(null);
      onDone();
    } catch (error) {
      setProblem(error);
    }
  };
  return html`<form class="ask" onSubmit=${submit}><label class="grow">Key<input type="password" autocomplete="off" autofocus required value=${key} onInput=${(e) => setKey(e.target.value)} /></label><button>Open</button></form>
    <${Notice} error=${problem} />`;
}

keepFocus(document.getElementById("page"));
render(html`<${App} />`, document.getElementById("page"));
