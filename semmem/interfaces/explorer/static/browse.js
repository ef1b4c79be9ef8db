// Browse: all memories of a namespace by filters, and what can be done with several at once.
import { html, useLayoutEffect, useMemo, useState } from "/page/vendor/preact.js";
import { address, api, call, go, pages, place } from "/page/api.js";
import { Field, More, Notice, Windowed, called, number, spoken, useLoaded, visible, warned, when } from "/page/parts.js";

const PAGE = 50; // memories at first
const NEXT = 500; // and whenever the end comes near
const ORDERS = { created: "newest first", updated: "changed last", accessed: "recalled last", importance: "important first" };
const day = (value, after) => (value ? `${value}T${after ? "00:00:00" : "23:59:59.999999"}Z` : undefined);
const MOST_FOUND = 1000; // memories with words that somebody seeks
const NAMED = 5; // ids that a sentence about several memories names
const listed = (memories) => memories.slice(0, NAMED).map(spoken).join(", ") + (memories.length > NAMED ? ` and ${memories.length - NAMED} more` : "");
const words = (text) => (text || "").split(",").map((one) => one.trim()).filter(Boolean);

// "kind=note, pages=3" as metadata: a value is JSON where it can be, else a text. What is no pair is left to say.
const pairs = (text) => words(text).map((one) => one.split(/=(.*)/s).slice(0, 2).map((part) => part.trim()));
const asValue = (text) => {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
};
const metadataOf = (text) => Object.fromEntries(pairs(text).filter(([, value]) => value).map(([name, value]) => [name, asValue(value)]));
const given = (table) => (Object.keys(table).length ? table : undefined);

export const filtersOf = (query) => ({
  metadata: given(metadataOf(query.metadata)) && JSON.stringify(metadataOf(query.metadata)), sensitive: query.sensitive,
  authors: words(query.author), sessions: words(query.session), tags: words(query.tags), titles: words(query.title),
  source_types: words(query.source_type), created_after: day(query.from, true), created_before: day(query.to, false), sort_by: query.sort,
});

// Memories with words of a text: the best first, by the lexical leg, which a slider would ask too, so nothing is logged.
async function foundByWords(ns, query, signal) {
  const { authors, sessions, tags, titles, source_types, created_after, created_before } = filtersOf(query);
  const some = Object.entries({ authors, sessions, tags, titles, source_types, created_after, created_before }).filter(([, value]) => value?.length);
  const filters = { ...Object.fromEntries(some), metadata: given(metadataOf(query.metadata)) };
  const { hits, total } = await api.withWords({ query: query.words, namespace: ns, limit: MOST_FOUND, filters }, signal);
  return { memories: hits.map(({ memory }) => memory), cursor: null, total };
}

export function BrowseView({ ns, query, openMemory, may, toast, changed }) {
  const [rows, setRows] = useState([]);
  const [cursor, setCursor] = useState(null);
  const [chosen, setChosen] = useState(new Set());
  const [problem, setProblem] = useState(null);
  const key = JSON.stringify([ns, query, changed]);
  const first = useLoaded((signal) => (query.words ? foundByWords(ns, query, signal) : api.list({ namespace: ns, limit: PAGE, ...filtersOf(query) }, signal)), [key]);
  useLayoutEffect(() => {
    if (!first.value) return;
    setRows(first.value.memories);
    setCursor(first.value.cursor);
    setChosen(new Set());
  }, [first.value]);
  const more = async () => {
    const page = await api.list({ namespace: ns, limit: NEXT, cursor, ...filtersOf(query) });
    setProblem(null);
    setRows((before) => [...before, ...page.memories]);
    setCursor(page.cursor);
  };
  const narrowed = Object.keys(query).some((name) => name !== "sort");
  const set = (changes) => go("browse", { ...place().query, ns, ...changes }, { replace: true }); // two fields may change before the next frame
  const all = rows.length > 0 && rows.every(({ id }) => chosen.has(id));
  const toggle = (id) => setChosen((before) => {
    const after = new Set(before);
    if (!after.delete(id)) after.add(id);
    return after;
  });
  const each = async (work, sentence, undo) => {
    setProblem(null);
    const done = [];
    try {
      for (const id of chosen) {
        await work(id);
        done.push(id);
      }
    } catch (error) {
      setProblem(error);
    }
    if (done.length) toast(`${done.length} ${done.length === 1 ? "memory" : "memories"} ${sentence}: ${listed(done.map((id) => rows.find((one) => one.id === id)))}.`, undo && (async () => { for (const id of done) await undo(id); first.reload(); }));
    first.reload();
  };
  return html`<section aria-labelledby="browse-title">
    <h1 id="browse-title">Browse</h1>
    <form class="ask filters" onSubmit=${(e) => e.preventDefault()}>
      <${Field} label="Words of the text" type="search" value=${query.words || ""} set=${(words) => set({ words })} />
      <${Field} label="Author" placeholder="whole name" value=${query.author || ""} set=${(author) => set({ author })} />
      <${Field} label="Session" value=${query.session || ""} set=${(session) => set({ session })} />
      <${Field} label="Title" value=${query.title || ""} set=${(title) => set({ title })} />
      <${Field} label="Tags, all of" value=${query.tags || ""} placeholder="a, b" set=${(tags) => set({ tags })} />
      <label>Comes from<select value=${query.source_type || ""} onChange=${(e) => set({ source_type: e.target.value })}>
        <option value="">anybody</option>${["user", "agent", "tool", "imported"].map((one) => html`<option value=${one}>${one}</option>`)}</select></label>
      <${Field} label="Metadata" value=${query.metadata || ""} placeholder="name=value" set=${(metadata) => set({ metadata })} />
      <label>Sensitive<select value=${query.words ? "false" : query.sensitive || ""} disabled=${Boolean(query.words)} onChange=${(e) => set({ sensitive: e.target.value })}>
        <option value="">with the others</option><option value="false">left out</option><option value="true">alone</option></select></label>
      <${Field} label="Written from" type="date" value=${query.from || ""} set=${(from) => set({ from })} />
      <${Field} label="Written to" type="date" value=${query.to || ""} set=${(to) => set({ to })} />
      <label>Order<select value=${query.words ? "" : query.sort || "created"} disabled=${Boolean(query.words)} onChange=${(e) => set({ sort: e.target.value })}>
        ${query.words && html`<option value="">best match first</option>`}${Object.entries(ORDERS).map(([name, told]) => html`<option value=${name}>${told}</option>`)}</select></label>
    </form>
    <p class="buttons">
      ${may.write && html`<button onClick=${() => openMemory("", ns)}>New memory</button><${Import} ...${{ ns, toast, done: first.reload }} />`}
      ${!query.words && html`<a class="button second" href=${address("/v1/export", { namespace: ns, ...filtersOf(query), sort_by: undefined })} download=${`${ns}.jsonl`}>${narrowed ? "Export these" : "Export"}</a>`}
      ${chosen.size > 0 && may.write && html`<span role="status">${chosen.size} chosen:</span>
        <button class="second" onClick=${() => each((id) => api.forget(id, ns), "forgotten", (id) => api.restore(id, ns))}>Forget</button>
        <button class="second" onClick=${() => each((id) => api.update(id, ns, { pinned: true }), "pinned", (id) => api.update(id, ns, { pinned: false }))}>Pin</button>
        <button class="second" onClick=${() => each((id) => api.update(id, ns, { pinned: false }), "no longer pinned")}>Unpin</button>`}
    </p>
    <${Forgotten} ...${{ ns, may, toast, changed: first.value, done: first.reload }} />
    <${Notice} error=${first.error || problem} />
    ${pairs(query.metadata).some(([, value]) => !value) && html`<${Notice}>Metadata are written as name=value, such as kind=note, or several with commas.<//>`}
    ${rows.length === 0 && !first.loading && html`<p class="notice">No memory here${query.words ? " has such words" : narrowed ? " with these filters" : ""}.</p>`}
    ${first.value?.total !== undefined && html`<p class="facts" role="status">${first.value.total.toLocaleString("en")} found by such words${first.value.total > rows.length ? `, the best ${rows.length.toLocaleString("en")} of them` : ""}. Sensitive memories are not searched.</p>`}
    ${!query.words && rows.length > 0 && html`<p class="facts">${rows.length.toLocaleString("en")} ${rows.length === 1 ? "memory" : "memories"}${cursor ? " so far; more come as you scroll" : ""}</p>`}
    <div class="scroll"><table class="rows" aria-rowcount=${cursor ? -1 : rows.length + 1}><thead><tr><th><input type="checkbox" aria-label="Choose all shown" title="Choose all shown" checked=${all} onChange=${() => setChosen(new Set(all ? [] : rows.map(({ id }) => id)))} /></th><th>memory</th><th>author</th><th>session</th><th>written</th></tr></thead>
      <${Windowed} tag="tbody" items=${rows} usual=${60} row=${(memory, at) => html`<tr key=${memory.id} data-at=${at} aria-rowindex=${at + 2}>
        <td><input type="checkbox" aria-label=${`Choose ${spoken(memory)}`} checked=${chosen.has(memory.id)} onChange=${() => toggle(memory.id)} /></td>
        <td><button class="plain title" onClick=${() => openMemory(memory.id, ns)}>${called(memory)}</button>
          ${memory.pinned && html`<span class="tag">pinned</span>`}${memory.sensitive && html`<span class="tag warn">sensitive</span>`}${memory.source_type && html`<span class="tag">${memory.source_type}</span>`}
          ${called(memory) !== visible(memory.text) && html`<span class="first" dir="auto">${visible((memory.text || "").slice(0, 200))}</span>`}</td>
        <td>${visible(memory.author || "")}</td><td>${visible(memory.session || "")}</td><td class="time">${when(memory.created_at)}</td></tr>`} /></table></div>
    ${cursor && html`<${More} more=${more} failed=${setProblem} />`}
  </section>`;
}

// A file of memories: JSON lines as the export writes them, or one text a file.
function Import({ ns, toast, done }) {
  const [problem, setProblem] = useState(null);
  const [over, setOver] = useState(false);
  const take = async (files) => {
    setProblem(null);
    setOver(false);
    try {
      for (const file of files) {
        const text = await file.text();
        if (/\.(jsonl|ndjson)$/i.test(file.name)) {
          const told = await api.rememberLines(ns, text);
          const bad = told.rejected?.length || 0;
          toast(`${file.name}: ${told.remembered} stored, ${told.unchanged} unchanged${bad ? `, ${bad} refused: ${told.rejected[0].reason || told.rejected[0].error || ""}` : ""}.${warned(told)}`);
        } else {
          if (!/\.(md|txt)$/i.test(file.name)) throw new Error(`${file.name} is not stored: the page reads .jsonl, .ndjson, .md and .txt. The command semmem import reads folders of notes and files of other programs, such as .csv.`);
          const title = file.name.replace(/\.\w+$/, "");
          const stored = await api.remember({ namespace: ns, id: file.name, title, text, source: file.name, source_type: "imported" });
          toast(`${file.name} is stored as one memory. The command semmem import reads folders of notes and files of other programs.${warned(stored)}`);
        }
      }
    } catch (error) {
      setProblem(error);
    }
    done();
  };
  return html`<label class=${`button second drop ${over ? "over" : ""}`} onDragOver=${(e) => { e.preventDefault(); setOver(true); }} onDragLeave=${() => setOver(false)}
      onDrop=${(e) => { e.preventDefault(); take([...e.dataTransfer.files]); }}>Import, or drop a file here
      <input type="file" multiple accept=".jsonl,.ndjson,.md,.txt" class="hidden" onChange=${(e) => { take([...e.target.files]); e.target.value = ""; }} /></label>
    <${Notice} error=${problem} />`;
}

// The forgotten memories, until maintain removes them.
function Forgotten({ ns, may, toast, changed, done }) {
  const [open, setOpen] = useState(false);
  const [problem, setProblem] = useState(null);
  const [sure, setSure] = useState(null); // the memory whose end was asked for once
  const { value, error, reload } = useLoaded(async () => (open ? api.forgotten(ns) : null), [ns, open, changed]);
  const take = async (memory) => {
    setProblem(null);
    try {
      await api.restore(memory.id, ns);
      toast(`${spoken(memory)} is taken back.`, async () => { await api.forget(memory.id, ns); done(); });
      done();
    } catch (failed) {
      setProblem(failed);
    }
    reload();
  };
  const end = async (memory) => {
    if (sure !== memory.id) return setSure(memory.id);
    setProblem(null);
    try {
      await api.forget(memory.id, ns, true);
      toast(`${spoken(memory)} is forgotten for good.`);
    } catch (failed) {
      setProblem(failed);
    }
    return reload();
  };
  return html`<details onToggle=${(e) => setOpen(e.target.open)}><summary>Forgotten memories</summary>
    <${Notice} error=${error || problem} />
    ${value?.length === 0 && html`<p class="hint">No forgotten memory can be taken back.</p>`}
    <ul class="links">${value?.map(({ memory, forgotten_at: at, forgotten_by: by }) => html`<li key=${memory.id}>
      ${may.write && html`<button class="small" aria-label=${`Take ${spoken(memory)} back`} onClick=${() => take(memory)}>Take back</button> <button class="small" aria-label=${sure === memory.id ? null : `Forget ${spoken(memory)} for good`} onClick=${() => end(memory)}>${sure === memory.id ? "Sure? Nothing brings it back" : "Forget for good"}</button> `}<b>${called(memory)}</b>
      <span class="under">${visible(memory.id)} · forgotten ${when(at)}${by ? ` by ${visible(by)}` : ""}</span><span class="first" dir="auto">${visible((memory.text || "").slice(0, 200))}</span></li>`)}</ul></details>`;
}

// Inbox: contradictions and near-duplicates that wait for a decision.
const WAITING = {
  contradicts: { read: api.contradictions, title: "Contradictions", one: "contradiction waits", more: "contradictions wait",
    hint: "Memories whose values contradict each other, the newer one first. Both are recalled until you decide which one holds.",
    first: "The first one holds", second: "The second one holds", both: "Both hold", said: "contradicts" },
  "see-also": { read: api.nearDuplicates, title: "Near-duplicates", one: "near-duplicate waits", more: "near-duplicates wait",
    hint: "Memories that say nearly the same, the newer one first.",
    first: "The first supersedes", second: "The second supersedes", both: "Keep both", said: "is nearly" },
};

export function InboxView(props) {
  return html`<section aria-labelledby="inbox-title"><h1 id="inbox-title">Inbox</h1>
    ${Object.keys(WAITING).map((type) => html`<${Waiting} key=${type} ...${{ ...props, type }} />`)}</section>`;
}

function Waiting({ ns, type, openMemory, may, toast, changed }) {
  const { read, title, one, more, hint } = WAITING[type];
  const { value: found, error, loading, reload } = useLoaded(() => read(ns), [ns, changed]);
  return html`<section aria-labelledby=${`waiting-${type}`}><h2 id=${`waiting-${type}`}>${title}</h2>
    <${Notice} error=${error} />
    ${loading && !found && html`<p class="hint" role="status">Reading…</p>`}
    ${found && html`<p class="facts" role="status">${found.length || "No"} ${found.length === 1 ? one : more} for a decision.</p>
      ${found.length > 0 && html`<p class="hint">${hint}</p>`}
      <ul class="pairs">${found.map((link) => html`<${Pair} key=${`${link.from_id} ${link.to_id}`} ...${{ link, ns, openMemory, may, toast, done: reload }} />`)}</ul>`}</section>`;
}

function Pair({ link, ns, openMemory, may, toast, done }) {
  const { from_id: from, to_id: to, type, made_by: by } = link;
  const { value, error } = useLoaded(() => Promise.all([api.get(from, ns), api.get(to, ns)]), [from, to, ns]);
  const [newer, older] = value || [];
  const [problem, setProblem] = useState(null);
  const words = WAITING[type];
  const decide = (work, sentence, undo) => async () => {
    try {
      await work();
      toast(sentence, async () => { await undo(); done(); });
      done();
    } catch (failed) {
      setProblem(failed);
    }
  };
  const over = (one, other) => decide(() => api.link(one.id, ns, "supersedes", other.id), `${spoken(one)} supersedes ${spoken(other)}.`, () => api.unlink(one.id, ns, "supersedes", other.id));
  const forget = (one) => decide(() => api.forget(one.id, ns), `${spoken(one)} is forgotten.`, () => api.restore(one.id, ns));
  const side = (memory) => memory && html`<div class="side"><button class="plain title" onClick=${() => openMemory(memory.id, ns)}>${called(memory)}</button>
    ${called(memory) !== visible(memory.text) && html`<p dir="auto">${visible((memory.text || "").slice(0, 500))}</p>`}<p class="under">${visible([memory.author, when(memory.created_at)].filter(Boolean).join(" · "))}</p></div>`;
  return html`<li class="pair">${side(newer)}<span class="against">${words.said}</span>${side(older)}
    <${Notice} error=${error || problem} />
    ${may.write && older && html`<p class="buttons">
      <button onClick=${over(newer, older)}>${words.first}</button>
      <button class="second" onClick=${over(older, newer)}>${words.second}</button>
      <button class="second" onClick=${decide(() => api.unlink(from, ns, type, to), `${words.both}.`, () => api.link(from, ns, type, to, by))}>${words.both}</button>
      <button class="second" onClick=${forget(newer)}>Forget the first</button><button class="second" onClick=${forget(older)}>Forget the second</button></p>`}</li>`;
}

// Time: memories by day as bars, an author a shade; a bar, a month, or a stretch of bars filters the list below.
const ROOM = { number: 22, month: 38, year: 48 }; // pixels that a label of the axis takes
const dated = (day, parts) => new Date(day).toLocaleDateString("en-GB", { timeZone: "UTC", ...parts });
const inFull = { weekday: "long", day: "numeric", month: "long", year: "numeric" };
const many = (count) => `${count.toLocaleString("en")} ${count === 1 ? "memory" : "memories"}`;
const sumOf = (of) => [...of.values()].reduce((a, b) => a + b, 0);

// The months, or years, of some days in order, by the letters of a day that name them: the places of their first and last day.
function stretches(days, letters) {
  const found = [];
  days.forEach(([day], at) => {
    const name = day.slice(0, letters);
    if (found.at(-1)?.name === name) found.at(-1).last = at;
    else found.push({ name, first: at, last: at });
  });
  return found;
}

// Those of some labels from left to right that have room.
const roomy = (labels, left, room) => {
  let free = 0;
  return labels.filter((one) => left(one) >= free && (free = left(one) + room));
};

export function TimeView({ ns, changed }) {
  const MOST = 20000;
  const { value, error, loading } = useLoaded(async () => {
    const days = new Map();
    let read = 0;
    for await (const rows of pages({ namespace: ns }, MOST)) {
      read += rows.length;
      for (const { created_at: at, author } of rows) {
        const name = at.slice(0, 10);
        const of = days.get(name) || new Map();
        of.set(author || "nobody", (of.get(author || "nobody") || 0) + 1);
        days.set(name, of);
      }
    }
    return { days: [...days].sort(([a], [b]) => (a < b ? -1 : 1)), read };
  }, [ns, changed]);
  const [start, setStart] = useState(null);
  const [end, setEnd] = useState(null);
  const [under, setUnder] = useState(null); // the bar under the pointer, or with the focus
  useLayoutEffect(() => setStart(null), [ns]);
  const days = value?.days || [];
  const bar = days[under];
  const authors = [...new Set(days.flatMap(([, of]) => [...of.keys()]))];
  const [from, to] = [Math.min(start, end), Math.max(start, end)];
  const chosen = start === null ? null : [days[from]?.[0], days[to]?.[0]];
  const bars = useMemo(() => { // the pointer over them draws none anew
    const most = Math.max(1, ...days.map(([, of]) => sumOf(of)));
    const width = Math.max(3, Math.min(24, 900 / Math.max(1, days.length)));
    const left = (at) => at * (width + 1);
    const numbers = width < 9 ? [] : roomy(days.map((_, at) => at), left, ROOM.number);
    const axis = (letters, room, short, long) => html`<div class="dates" role="group" aria-label=${`Choose a ${room}`}>${roomy(stretches(days, letters), ({ first }) => left(first), ROOM[room]).map(({ name, first, last }) => html`<button key=${name} class="plain" style=${{ left: `${left(first)}px` }}
      aria-label=${`${dated(name, long)}, ${many(days.slice(first, last + 1).reduce((sum, [, of]) => sum + sumOf(of), 0))}`} onClick=${() => { setStart(first); setEnd(last); }}>${dated(name, short)}</button>`)}</div>`;
    const inside = (at) => start !== null && at >= from && at <= to;
    return html`<div class="scroll"><div class="days" role="group" aria-label="Memories by day" onPointerLeave=${() => setUnder(null)}>
        ${days.map(([name, of], at) => html`<button key=${name} class=${`day ${inside(at) ? "in" : ""}`} style=${{ width: `${width}px` }} aria-label=${`${name}, ${many(sumOf(of))}`} aria-pressed=${inside(at)} onFocus=${() => setUnder(at)} onBlur=${() => setUnder(null)}
            onPointerDown=${(e) => { e.target.releasePointerCapture?.(e.pointerId); setStart(at); setEnd(at); }} onPointerEnter=${(e) => { setUnder(at); if (e.buttons && start !== null) setEnd(at); }} onClick=${(e) => { if (e.detail > 0) return; if (!e.shiftKey || start === null) setStart(at); setEnd(at); }}>
            ${[...of].map(([author, count]) => html`<i class=${`shade${authors.indexOf(author) % 6}`} style=${{ height: `${(120 * count) / most}px` }}></i>`)}</button>`)}</div>
      ${numbers.length > 0 && html`<div class="dates" aria-hidden="true">${numbers.map((at) => html`<span style=${{ left: `${left(at)}px`, minWidth: `${width}px` }}>${Number(days[at][0].slice(8))}</span>`)}</div>`}
      ${axis(7, "month", { month: "short" }, { month: "short", year: "numeric" })}${axis(4, "year", { year: "numeric" }, { year: "numeric" })}</div>`;
  }, [value, start, end]);
  return html`<section aria-labelledby="time-title"><h1 id="time-title">Time</h1>
    <${Notice} error=${error} />
    ${loading && html`<p class="hint" role="status">Reading…</p>`}
    ${days.length > 0 && html`<p class="hint">A bar is a day with memories, its parts are authors. Drag over bars, or choose a month or year, to see what was written then; by keyboard, Enter begins with a day and Shift+Enter ends with one.</p>
      <p class="facts">${bar ? html`<b>${dated(bar[0], inFull)}</b>${[...bar[1]].map(([author, count]) => html`<span>${visible(author)} ${count.toLocaleString("en")}</span>`)}` : `${dated(days[0][0], inFull)} to ${dated(days.at(-1)[0], inFull)}, the newest ${many(value.read)}`}</p>
      ${bars}
      <ul class="legend">${authors.slice(0, 12).map((author, at) => html`<li><i class=${`shade${at % 6}`}></i>${visible(author)}</li>`)}</ul>
      ${chosen && html`<p><button onClick=${() => go("browse", { ns, from: chosen[0], to: chosen[1] })}>Show ${chosen[0] === chosen[1] ? chosen[0] : `${chosen[0]} to ${chosen[1]}`}</button></p>`}`}
    ${!loading && days.length === 0 && !error && html`<p class="notice">This namespace has no memory yet.</p>`}</section>`;
}

const MOST_LIMITS = 50; // namespaces whose limits are read
const limited = (limits) => (limits ? Object.entries(limits).filter(([, one]) => one !== null).map(([name, one]) => `${name.replaceAll("_", " ")} ${one.toLocaleString("en")}`).join(", ") || "none" : "");

// Health: what the store holds and how it is searched.
export function HealthView({ ns, may, toast }) {
  const told = useLoaded(async () => {
    const [stats, settings, limits, version] = await Promise.all([api.stats(ns), api.settings(ns), api.limits(ns).catch(() => null), api.version()]);
    const ready = await api.ready().then(() => "ready", (error) => error.message);
    const reach = await call("GET", "/v1/reach", { query: { namespace: ns, k: 10 } });
    const spaces = await api.namespaces();
    const bounds = await Promise.all(spaces.slice(0, MOST_LIMITS).map(({ name }) => api.limits(name).catch(() => null)));
    const findings = await api.doctor().catch((error) => error); // a key that may not do all sees none, and why
    const counters = await api.metrics();
    return { stats, settings, limits, version, ready, reach, findings, counters, spaces: spaces.map((one, at) => ({ ...one, limits: bounds[at] })) };
  }, [ns]);
  const { value, error } = told;
  const own = value ? Object.entries(value.settings.settings) : [];
  return html`<section aria-labelledby="health-title"><h1 id="health-title">Health</h1>
    <${Notice} error=${error} />
    ${value && html`<dl class="health">
      <dt>Store</dt><dd>${value.ready}, semmem ${value.version.version}</dd>
      <dt>Memories</dt><dd>${value.stats.memories.toLocaleString("en")}, with ${value.stats.vectors.toLocaleString("en")} vectors of ${value.stats.embedder || "no embedder"}</dd>
      <dt>Graph</dt><dd>${value.stats.estimated.length ? "about " : ""}${value.stats.concepts.toLocaleString("en")} concepts, ${value.stats.mentions.toLocaleString("en")} mentions</dd>
      ${value.stats.bytes !== null && html`<dt>Size of the store</dt><dd>${(value.stats.bytes / 2 ** 20).toFixed(1)} MiB</dd>`}
      ${value.stats.stale > 0 && html`<dt>Stale</dt><dd class="warn">${value.stats.stale} memories were derived by an older version; semmem maintain derives them again</dd>`}
      ${value.stats.pending > 0 && html`<dt>Pending</dt><dd>${value.stats.pending} memories wait for comparison; semmem maintain makes their links</dd>`}
      ${value.limits && Object.entries(value.limits).filter(([name, one]) => one !== null && name !== "namespace").map(([name, one]) => html`<dt>${name.replaceAll("_", " ")}</dt><dd>${typeof one === "object" ? JSON.stringify(one) : String(one)}</dd>`)}
    </dl>
    <${Findings} found=${value.findings} />
    <h2>How ${visible(ns)} is searched</h2>
    <p>Recipe ${value.settings.recipe.name}${own.length ? ", with settings of its own:" : "; it has no settings of its own."}</p>
    ${own.length > 0 && html`<ul>${own.map(([name, one]) => html`<li><code>${name}</code> = ${JSON.stringify(one)}
      ${may.admin && html` <button class="small" onClick=${async () => { await api.unset(ns, [name]); toast(`${name} is that of the recipe again.`); told.reload(); }}>Remove</button>`}</li>`)}</ul>`}
    <h2>Reach: what each leg can do in the first 10</h2>
    <div class="scroll"><table><thead><tr><th>question</th><th>leg</th><th>class</th><th>why</th></tr></thead><tbody>
      ${Object.entries(value.reach.regimes).flatMap(([regime, { legs }]) => Object.entries(legs).map(([leg, one]) => html`<tr><td>${regime}</td><td>${leg}</td><td><span class=${`badge ${one.class}`}>${one.class}</span></td><td class="certificate">${one.certificate}</td></tr>`))}</tbody></table></div>
    <h2>Namespaces</h2>
    <div class="scroll"><table><thead><tr><th>namespace</th><th>memories</th><th>changed last</th><th>limits</th></tr></thead><tbody>
      ${value.spaces.map((one) => html`<tr><td><button class="plain" aria-label=${`Health of ${one.name}`} onClick=${() => go("health", { ns: one.name })}>${visible(one.name)}</button></td>
        <td>${one.memories.toLocaleString("en")}</td><td>${when(one.updated_at)}</td><td>${limited(one.limits)}</td></tr>`)}</tbody></table></div>
    <${Counters} rows=${value.counters} />
    <p><a href="/docs">The API</a> · <a href="/metrics">Metrics</a></p>`}</section>`;
}

const STATES = { bad: ["✗", "mend it with"], optional: ["·", "if you want it"], good: ["✓", ""] };

// What `semmem doctor` finds on the machine of the store: the faults first, what is in order by request.
function Findings({ found }) {
  if (found instanceof Error) return html`<h2>What doctor finds</h2><${Notice}>${found.message}<//>`;
  const row = ({ what, state, detail, mend }) => html`<li class=${state}><b>${STATES[state][0]} ${what}</b> ${visible(detail)}${mend && html`<span class="under">${STATES[state][1]}: <code>${mend}</code></span>`}</li>`;
  const [good, rest] = [found.filter(({ state }) => state === "good"), found.filter(({ state }) => state !== "good")];
  rest.sort((one, other) => (one.state === "bad" ? 0 : 1) - (other.state === "bad" ? 0 : 1));
  return html`<h2>What doctor finds</h2>
    <p class="facts" role="status">${rest.filter(({ state }) => state === "bad").length || "Nothing"} to mend.</p>
    <ul class="findings">${rest.map(row)}</ul>
    <details><summary>${good.length} in order</summary><ul class="findings">${good.map(row)}</ul></details>`;
}

// Since the server began: requests by verb, as /metrics counts them.
function Counters({ rows }) {
  const verbs = new Map();
  const gauges = { semmem_verbs_at_work: "verbs at work", semmem_resident_namespaces: "namespaces in memory", semmem_resident_bytes: "bytes of them" };
  const others = [];
  for (const { name, labels, value } of rows) {
    const of = verbs.get(labels.verb) || verbs.set(labels.verb, { answered: 0, refused: 0, seconds: 0 }).get(labels.verb);
    if (name === "semmem_requests_total") of[labels.status >= "400" ? "refused" : "answered"] += value;
    if (name === "semmem_request_seconds_sum") of.seconds = value;
    if (name in gauges) others.push([gauges[name], value]);
    if (name === "semmem_degraded_total") others.push([`recalls without ${labels.leg}`, value]);
  }
  verbs.delete(undefined);
  return html`<h2>Requests since the server began</h2>
    <p class="facts">${others.map(([name, value]) => html`<span>${name} <b>${value.toLocaleString("en")}</b></span>`)}</p>
    <div class="scroll"><table><thead><tr><th>verb</th><th>answered</th><th>refused</th><th>mean time</th></tr></thead><tbody>
      ${[...verbs].sort(([a], [b]) => (a < b ? -1 : 1)).map(([verb, { answered, refused, seconds }]) => html`<tr><td>${verb}</td><td>${answered.toLocaleString("en")}</td><td>${refused || ""}</td><td>${number((1000 * seconds) / (answered + refused), 1)} ms</td></tr>`)}</tbody></table></div>`;
}
