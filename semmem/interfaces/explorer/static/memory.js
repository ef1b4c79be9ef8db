// One memory: its fields, an edit that minds the version, its history with differences, its links.
import { html, useState } from "/page/vendor/preact.js";
import { api, asked, go } from "/page/api.js";
import { Dialog, LongText, Notice, called, spoken, useLoaded, visible, warned, when } from "/page/parts.js";

const BACKWARDS = "is superseded by";
const LINKS = ["supersedes", BACKWARDS, "resolved-by", "part-of", "see-also", "contradicts"];
const FILTERS = ["author", "session"]; // fields that open the list of all memories with the same
const FIELDS = ["text", "title", "author", "session", "tags", "importance", "pinned", "sensitive"]; // that an edit changes
const EMPTY = { text: "", title: "", author: "", session: "", tags: [], importance: 0.5, pinned: false, sensitive: false, valid_to: null };

export function MemoryDialog({ id, ns, may, toast, onClose, onChange, openMemory, foot }) {
  const isNew = id === "";
  const { value: memory, error, loading, reload } = useLoaded(async () => (isNew ? EMPTY : api.get(id, ns)), [id, ns]);
  const [tab, setTab] = useState(isNew ? "edit" : "memory");
  const changed = (sentence, undo) => {
    toast(sentence, undo && (async () => { await undo(); onChange(); reload(); }));
    onChange();
  };
  const forget = async () => {
    await api.forget(id, ns);
    changed(`${spoken(memory)} is forgotten.`, () => api.restore(id, ns));
    onClose();
  };
  const back = async (version) => { // the fields of an earlier version once more, as a new version
    const differ = FIELDS.filter((name) => JSON.stringify(version.memory[name]) !== JSON.stringify(memory[name]));
    if (!differ.length) return toast("No field that an edit changes differs from that version.");
    const of = (one) => Object.fromEntries(differ.map((name) => [name, one[name] ?? null]));
    await api.update(id, ns, of(version.memory), memory.version);
    changed(`${spoken(memory)} is as in version ${version.version} again.`, () => api.update(id, ns, of(memory)));
    reload();
    return setTab("memory");
  };
  const tabs = isNew ? [] : ["memory", ...(may.write ? ["edit"] : []), "history", "links"];
  return html`<${Dialog} title=${isNew ? "New memory" : called({ id, ...memory }, 60)} onClose=${onClose} foot=${foot}>
    <${Notice} error=${error} />
    ${tabs.length > 0 && html`<div class="tabs" role="tablist">${tabs.map((name) => html`<button role="tab" aria-selected=${tab === name} onClick=${() => setTab(name)}>${name}</button>`)}</div>`}
    ${memory && tab === "memory" && html`<${Fields} ...${{ memory, ns, onClose, openMemory }} />
      ${may.write && html`<p class="buttons"><button class="second" onClick=${async () => { await api.update(id, ns, { pinned: !memory.pinned }); changed(memory.pinned ? `${spoken(memory)} is no longer pinned.` : `${spoken(memory)} is pinned: every context of this namespace has it.`); reload(); }}>${memory.pinned ? "Unpin" : "Pin"}</button>
        <button class="second" onClick=${forget}>Forget</button></p>`}`}
    ${memory && tab === "edit" && !loading && html`<${Edit} key=${memory.version} ...${{ memory, id, ns, isNew, onClose, done: (sentence, undo) => { changed(sentence, undo); reload(); setTab("memory"); } }} />`}
    ${tab === "history" && html`<${History} ...${{ id, ns, memory, may, back }} />`}
    ${memory && tab === "links" && html`<${Links} ...${{ id, ns, memory, may, openMemory, changed }} />`}
  <//>`;
}

// A memory by its id; what is no id is taken for words of its text, and the memories with these are offered.
const OFFERED = 6;
export function Wanted({ label, verb, ns, take, but, known = [], children }) {
  const [typed, setTyped] = useState("");
  const [found, setFound] = useState([]);
  const [problem, setProblem] = useState(null);
  const use = (memory) => {
    setFound([]);
    setTyped(memory.id);
    take(memory);
  };
  const seek = async (event) => {
    event.preventDefault();
    setProblem(null);
    const wanted = typed.trim();
    try {
      use(await api.get(wanted, ns));
    } catch (failed) {
      if (failed.status !== 404) return setProblem(failed);
      const { hits } = await api.withWords({ query: wanted, namespace: ns, limit: OFFERED });
      const others = hits.filter((hit) => hit.id !== but);
      setFound(others);
      if (!others.length) setProblem(new Error(`No ${but ? "other " : ""}memory here has the id ${visible(wanted)}, nor such words.`));
    }
    return undefined;
  };
  return html`<form class="ask" onSubmit=${seek}>${children}
      <label class="grow">${label}<input required list=${known.length ? "known" : null} placeholder="Its id, or words of its text" value=${typed} onInput=${(e) => setTyped(e.target.value)} /></label>
      ${known.length > 0 && html`<datalist id="known">${known.map((hit) => html`<option value=${hit.id}>${called(hit.memory, 60)}</option>`)}</datalist>`}<button>${verb}</button></form>
    <${Notice} error=${problem} />
    ${found.length > 0 && html`<p class="hint" role="status">Which of these?</p><ul class="beside">${found.map(({ memory }) => html`<li><button class="plain" onClick=${() => use(memory)}>${called(memory)}</button></li>`)}</ul>`}`;
}

function Fields({ memory, ns, onClose, openMemory }) {
  const times = { written: memory.created_at, changed: memory.updated_at, "valid from": memory.valid_from, "valid to": memory.valid_to, expires: memory.expires_at, "recalled last": memory.last_accessed };
  const rows = { id: memory.id, author: memory.author, session: memory.session, source: memory.source, "comes from": memory.source_type, tags: memory.tags.join(", "), importance: memory.importance, version: memory.version, recalls: memory.access_count };
  const to = (view, query) => { onClose(); go(view, { ns, ...query }); };
  const last = asked()?.ns === ns ? asked().q : null;
  const shown = (value) => value !== null && value !== undefined && value !== "";
  return html`<${LongText} text=${memory.text || ""} />
    <dl class="fields">${Object.entries(rows).filter(([, value]) => shown(value)).map(([name, value]) => html`<dt>${name}</dt><dd>${FILTERS.includes(name) ? html`<button class="plain" title=${`All memories of this ${name}`} onClick=${() => to("browse", { [name]: value })}>${visible(value)}</button>` : visible(String(value))}</dd>`)}
      ${Object.entries(times).filter(([, value]) => value).map(([name, value]) => html`<dt>${name}</dt><dd>${when(value)}</dd>`)}
      ${memory.contradicts.length > 0 && html`<dt>contradicts</dt><dd>${memory.contradicts.map((one) => html`<button class="plain" onClick=${() => openMemory(one, ns)}>${visible(one)}</button> `)}</dd>`}
      ${Object.keys(memory.metadata).length > 0 && html`<dt>metadata</dt><dd><code>${visible(JSON.stringify(memory.metadata, null, 1))}</code></dd>`}</dl>
    <p class="buttons"><button class="plain" onClick=${() => to("graph", { around: memory.id })}>Show it in the graph</button>
      ${last && html`<button class="plain" onClick=${() => to("recall", { q: last, why: memory.id })}>Why, or why not, for “${visible(last.slice(0, 60))}”</button>`}</p>`;
}

function Edit({ memory, id, ns, isNew, onClose, done }) {
  const [draft, setDraft] = useState(memory);
  const [problem, setProblem] = useState(null);
  const [theirs, setTheirs] = useState(null); // the memory as somebody else changed it meanwhile
  const base = theirs || memory;
  const meanwhile = async () => {
    try {
      setTheirs(await api.get(id, ns));
      return new Error("Somebody changed this memory meanwhile. What you typed is kept: look at their change below, then save again.");
    } catch (failed) {
      return failed;
    }
  };
  const [touched] = useState(new Set()); // the fields that this person has changed: the others stay as somebody else may have changed them
  const set = (name) => (event) => touched.add(name) && setDraft({ ...draft, [name]: event.target.type === "checkbox" ? event.target.checked : event.target.value });
  const save = async (event) => {
    event.preventDefault();
    setProblem(null);
    const fields = { text: draft.text, title: draft.title || null, author: draft.author || null, session: draft.session || null, tags: Array.isArray(draft.tags) ? draft.tags : draft.tags.split(",").map((one) => one.trim()).filter(Boolean), importance: Number(draft.importance), pinned: draft.pinned, sensitive: draft.sensitive };
    try {
      if (isNew) {
        const given = Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== null));
        const stored = await api.remember({ namespace: ns, ...given });
        done(`Stored as ${stored.id}.${warned(stored)}`, () => api.forget(stored.id, ns));
        onClose();
        return;
      }
      const changes = Object.fromEntries(Object.entries(fields).filter(([name, value]) => touched.has(name) && JSON.stringify(value) !== JSON.stringify(base[name])));
      if (!Object.keys(changes).length) throw new Error("Nothing is changed.");
      const before = Object.fromEntries(Object.keys(changes).map((name) => [name, base[name]]));
      const stored = await api.update(id, ns, changes, base.version);
      done(`${spoken(memory)} is changed; its history has the earlier version.${warned(stored)}`, () => api.update(id, ns, before));
    } catch (error) {
      setProblem(error.status === 412 ? await meanwhile() : error);
    }
  };
  return html`<form class="edit" onSubmit=${save}>
    <label>Text<textarea rows="8" required value=${draft.text} onInput=${set("text")}></textarea></label>
    <div class="two"><label>Title<input value=${draft.title || ""} onInput=${set("title")} /></label>
      <label>Author<input value=${draft.author || ""} onInput=${set("author")} /></label>
      <label>Session<input value=${draft.session || ""} onInput=${set("session")} /></label>
      <label>Tags<input placeholder="a, b" value=${Array.isArray(draft.tags) ? draft.tags.join(", ") : draft.tags} onInput=${set("tags")} /></label>
      <label>Importance, 0 to 1<input type="number" min="0" max="1" step="0.05" value=${draft.importance} onInput=${set("importance")} /></label>
      <label class="check"><input type="checkbox" checked=${draft.pinned} onChange=${set("pinned")} /> pinned: in every context</label>
      <label class="check"><input type="checkbox" checked=${draft.sensitive} onChange=${set("sensitive")} /> sensitive: its text is in no index</label></div>
    <${Notice} error=${problem} />
    ${theirs && html`<div class="theirs"><p class="under">version ${theirs.version} · ${when(theirs.updated_at)}</p>${FIELDS.filter((name) => JSON.stringify(memory[name]) !== JSON.stringify(theirs[name])).map((name) => html`<p class="under">${name}</p><${Difference} before=${String(memory[name] ?? "")} after=${String(theirs[name] ?? "")} />`)}</div>`}
    <p class="buttons"><button>Save</button></p></form>`;
}

function History({ id, ns, memory, may, back }) {
  const { value: versions, error, loading } = useLoaded(() => api.history(id, ns), [id, ns]);
  return html`<${Notice} error=${error} />${loading && html`<p class="hint">Reading…</p>`}
    <ol class="versions" reversed>${versions && [...versions].reverse().map((version, at, all) => html`<li>
      <p class="under">version ${version.version} · ${when(version.changed_at)}${version.changed_by ? ` · by ${visible(version.changed_by)}` : ""}${version.forgotten_at ? ` · forgotten ${when(version.forgotten_at)}` : ""}${version.changed.length ? ` · changed: ${version.changed.join(", ")}` : ""}${may.write && memory && version.version !== memory.version ? html` <button class="small" aria-label=${`Take version ${version.version} back`} onClick=${() => back(version)}>Take back</button>` : ""}</p>
      <${Difference} before=${all[at + 1]?.memory.text} after=${version.memory.text || ""} /></li>`)}</ol>`;
}

const MOST_WORDS = 1500; // words of a text above which two versions are not compared word by word

function Difference({ before, after }) {
  if (before === undefined || before === after) return html`<${LongText} text=${after} most=${1200} />`;
  const [a, b] = [before.split(/(\s+)/), after.split(/(\s+)/)];
  if (a.length > MOST_WORDS || b.length > MOST_WORDS) return html`<${LongText} text=${after} most=${1200} />`;
  return html`<p class="text" dir="auto">${compared(a, b).map(([kind, text]) => (kind === "=" ? visible(text) : kind === "-" ? html`<del>${visible(text)}</del>` : html`<ins>${visible(text)}</ins>`))}</p>`;
}

// The words of two texts by their longest common subsequence: ["=" | "-" | "+", text].
export function compared(a, b) {
  const longest = Array.from({ length: a.length + 1 }, () => new Uint16Array(b.length + 1));
  for (let i = a.length - 1; i >= 0; i--)
    for (let j = b.length - 1; j >= 0; j--) longest[i][j] = a[i] === b[j] ? longest[i + 1][j + 1] + 1 : Math.max(longest[i + 1][j], longest[i][j + 1]);
  const out = [];
  const add = (kind, text) => (out.at(-1)?.[0] === kind ? (out.at(-1)[1] += text) : out.push([kind, text]));
  let [i, j] = [0, 0];
  while (i < a.length || j < b.length) {
    if (i < a.length && j < b.length && a[i] === b[j]) (add("=", a[i]), i++, j++);
    else if (i < a.length && (j === b.length || longest[i + 1][j] >= longest[i][j + 1])) add("-", a[i++]);
    else add("+", b[j++]);
  }
  return out;
}

function Links({ id, ns, memory, may, openMemory, changed }) {
  const { value: links, error, reload } = useLoaded(async () => {
    const told = await api.links(id, ns);
    const ends = [...new Set(told.flatMap((link) => [link.from_id, link.to_id]))];
    const found = new Map(await Promise.all(ends.map(async (one) => [one, one === id ? memory : await api.get(one, ns).catch(() => ({ id: one }))])));
    return told.map((link) => ({ ...link, ends: [link.from_id, link.to_id].map((one) => called({ id: one, ...found.get(one) }, 60)) }));
  }, [id, ns, memory]);
  const [type, setType] = useState("see-also");
  const [problem, setProblem] = useState(null);
  const last = asked()?.ns === ns ? asked().hits.filter((hit) => hit.id !== id) : []; // the hits beside it are offered
  const ends = (other) => (type === BACKWARDS ? [other, "supersedes", memory] : [memory, type, other]);
  const act = (work, sentence, undo) => async () => {
    setProblem(null);
    try {
      await work();
      changed(sentence, async () => { await undo(); reload(); });
      reload();
    } catch (failed) {
      setProblem(failed);
    }
  };
  const take = (found) => {
    const [one, kind, other] = ends(found);
    act(() => api.link(one.id, ns, kind, other.id), `${spoken(one)} ${kind} ${spoken(other)}.`, () => api.unlink(one.id, ns, kind, other.id))();
  };
  return html`<${Notice} error=${error || problem} />
    ${links?.length === 0 && html`<p class="hint">It has no links.</p>`}
    <ul class="links">${links?.map((link) => {
      const { from_id: from, to_id: other } = link;
      return html`<li><button class="plain" onClick=${() => openMemory(from, ns)}>${link.ends[0]}</button> ${link.type} <button class="plain" onClick=${() => openMemory(other, ns)}>${link.ends[1]}</button>
        ${may.write && html` <button class="small" onClick=${act(() => api.unlink(from, ns, link.type, other), "The link is removed.", () => api.link(from, ns, link.type, other))}>Remove</button>`}</li>`;
    })}</ul>
    ${may.write && html`<${Wanted} label="the memory" verb="Link" ...${{ ns, take, known: last, but: id }}>
      <label>This memory<select value=${type} onChange=${(e) => setType(e.target.value)}>${LINKS.map((one) => html`<option value=${one}>${one}</option>`)}</select></label><//>`}`;
}
