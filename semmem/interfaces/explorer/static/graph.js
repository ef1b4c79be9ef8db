// Graph: names and memories around a hit, a name or a session, drawn by Cytoscape.js and listed for the keyboard.
import { html, useLayoutEffect, useMemo, useState } from "/page/vendor/preact.js";
import { api, asked, go } from "/page/api.js";
import { Canvas } from "/page/canvas.js";
import { Notice, useLoaded, visible } from "/page/parts.js";

const HUB = 12; // neighbours from which a name counts as a hub
const SIZES = [100, 300, 1000, 3000];
const NOTHING = { nodes: new Map(), edges: new Map() };
const QUESTION = "question";
const SORTS = { name: "name", stem: "word", bigram: "two words" }; // of concepts; names alone can be merged

export function GraphView({ ns, query, openMemory, may, toast }) {
  const [text, setText] = useState(query.around || query.session || "");
  const [kind, setKind] = useState(query.session ? "session" : "around");
  const [drawn, setDrawn] = useState(NOTHING);
  const [hubs, setHubs] = useState(true);
  const [chosen, setChosen] = useState(null);
  const [problem, setProblem] = useState(null);
  const [wanted, setWanted] = useState("");
  const question = query.q || (asked()?.ns === ns ? asked().q : "");
  const [ways, setWays] = useState(Boolean(query.q) || !(query.around || query.session));
  const { around, session } = query;
  const hops = Number(query.hops) || 2;
  const limit = Number(query.most) || 300;
  useLayoutEffect(() => { setText(around || session || ""); setKind(session ? "session" : "around"); }, [around, session]);
  const first = useLoaded(() => begun(ns, { around, session, hops, limit }), [ns, around, session, hops, limit]);
  const paths = useLoaded(async (signal) => (question && ways ? (await api.paths({ query: question, namespace: ns, limit: 10 }, signal)).paths : []), [ns, question, ways]);
  const names = useLoaded((signal) => api.concepts({ namespace: ns, like: kind === "around" && text && text !== around ? text : undefined, limit: 40 }, signal), [ns, text, kind]);
  useLayoutEffect(() => {
    setDrawn(first.value || NOTHING);
    setChosen([...(first.value || NOTHING).nodes.values()].find((node) => node.start)?.id || null);
  }, [first.value]);
  const shown = useMemo(() => withPaths(drawn, ways ? paths.value || [] : []), [drawn, paths.value, ways]);
  const to = (changes) => go("graph", { ns, around, session, q: query.q, hops: query.hops, most: query.most, ...changes });
  const expand = async (node) => {
    setProblem(null);
    try {
      const more = await api.graph({ namespace: ns, around: node.name, hops: 1, limit: 60 });
      setDrawn((before) => joined(before, more));
    } catch (error) {
      setProblem(error);
    }
  };
  const collapse = (node) => setDrawn((before) => without(before, node.id));
  const degrees = useMemo(() => {
    const count = new Map();
    for (const { source, target } of shown.edges.values()) for (const end of [source, target]) count.set(end, (count.get(end) || 0) + 1);
    return count;
  }, [shown]);
  const hidden = useMemo(() => new Set(hubs ? [] : [...shown.nodes.values()].filter((node) => node.kind === "concept" && !node.start && (degrees.get(node.id) || 0) >= HUB).map((node) => node.id)), [shown, hubs, degrees]);
  const find = (event) => {
    event.preventDefault();
    const piece = wanted.trim().toLowerCase();
    const all = [...shown.nodes.values()].filter((node) => `${node.title || ""} ${node.name} ${node.text || ""} ${node.also || ""}`.toLowerCase().includes(piece));
    const next = all[(all.findIndex((node) => node.id === chosen) + 1) % Math.max(1, all.length)];
    setProblem(next ? null : new Error(`Nothing in the picture contains “${wanted.trim()}”. Expand a node, or show more memories.`));
    if (next) setChosen(next.id);
  };
  const node = chosen && shown.nodes.get(chosen);
  const beside = node ? neighbours(shown, chosen) : [];
  return html`<section class="graph" aria-labelledby="graph-title"><h1 id="graph-title">Graph</h1>
    <form class="ask" onSubmit=${(e) => { e.preventDefault(); to({ around: kind === "around" ? text.trim() : undefined, session: kind === "session" ? text.trim() : undefined }); }}>
      <label>Around<select value=${kind} onChange=${(e) => setKind(e.target.value)}><option value="around">a name or memory</option><option value="session">a session</option></select></label>
      <label class="grow">${kind === "session" ? "The session" : "A name or the id of a memory"}<input value=${text} required list=${kind === "session" ? null : "names"} onInput=${(e) => setText(e.target.value)} /></label>
      <datalist id="names">${(names.value || []).map((one) => html`<option value=${one.name} />`)}</datalist>
      <label>Hops<select value=${String(hops)} onChange=${(e) => to({ hops: e.target.value })}>${["1", "2", "3"].map((one) => html`<option value=${one}>${one}</option>`)}</select></label>
      <label>At most<select value=${String(limit)} onChange=${(e) => to({ most: e.target.value })}>${SIZES.map((one) => html`<option value=${String(one)}>${one.toLocaleString("en")} memories</option>`)}</select></label>
      <button>Show</button></form>
    <p class="buttons"><label class="check"><input type="checkbox" checked=${!hubs} onChange=${(e) => setHubs(!e.target.checked)} /> hide hubs</label>
      ${question && html`<label class="check"><input type="checkbox" checked=${ways} onChange=${(e) => setWays(e.target.checked)} /> <span>paths of the last question, <q>${visible(question.slice(0, 80))}</q></span></label>`}</p>
    <${Notice} error=${first.error || paths.error || problem} />
    ${shown.nodes.size === 0 && !first.loading && html`<p class="hint">The names that most memories mention:</p>
      <p class="names">${(names.value || []).map((one) => html`<button class="second" onClick=${() => to({ around: one.name, session: undefined })}>${visible(one.name)} <small>${one.df}${one.aliases.length > 0 && `, also ${visible(one.aliases.join(", "))}`}</small></button>`)}</p>`}
    ${shown.nodes.size > 0 && html`<div class="columns">
      <div><form class="ask" role="search" onSubmit=${find}><label class="grow">Find in the picture<input type="search" required value=${wanted} onInput=${(e) => setWanted(e.target.value)} /></label><button class="second">Next</button></form>
        <${Canvas} ...${{ shown, hidden, chosen, setChosen, expand }} />
        <p class="facts"><span>Squares are memories, circles names, rings words.</span><span>${shown.nodes.size.toLocaleString("en")} nodes, ${shown.edges.size.toLocaleString("en")} edges${hidden.size ? `, ${hidden.size} hubs hidden` : ""}${first.value?.left_out ? `, ${first.value.left_out.toLocaleString("en")} more memories not read` : ""}</span></p></div>
      <aside>${node ? html`<${Node} ...${{ node, ns, may, toast, openMemory, expand, collapse, done: first.reload }} />
        <h3>Beside it</h3><ul class="beside">${beside.slice(0, 200).map(({ other, edge }) => html`<li><button class="plain" onClick=${() => setChosen(other.id)}>${visible((other.title || other.name).slice(0, 80))}</button> <small>${visible(edge.role || edge.type)}</small></li>`)}</ul>`
        : html`<p class="hint">Choose a node to see what is beside it.</p>
        <ul class="beside">${[...shown.nodes.values()].slice(0, 50).map((one) => html`<li><button class="plain" onClick=${() => setChosen(one.id)}>${visible((one.title || one.name).slice(0, 80))}</button></li>`)}</ul>`}</aside></div>`}
  </section>`;
}

function Node({ node, ns, may, toast, openMemory, expand, collapse, done }) {
  if (node.kind === QUESTION) return html`<h2>The question</h2><p dir="auto">${visible(node.title)}</p>`;
  const isMemory = node.kind === "memory";
  return html`<h2>${visible(node.title || node.name)}</h2>
    ${isMemory ? html`<p dir="auto">${visible((node.text || "").slice(0, 400))}</p>` : html`<p class="hint">${SORTS[node.sort] || node.kind}, in ${node.df ?? "some"} ${node.df === 1 ? "memory" : "memories"}${node.also ? `; the same ones have ${visible(node.also)}` : ""}</p>`}
    <p class="buttons">${isMemory && html`<button onClick=${() => openMemory(node.name, ns)}>Open</button>`}
      <button class="second" onClick=${() => expand(node)}>Expand</button><button class="second" onClick=${() => collapse(node)}>Collapse</button></p>
    ${node.sort === "name" && html`<${Names} key=${node.name} ...${{ ns, name: node.name, may, toast, done }} />`}`;
}

// The names that people merged into this one, with a way to take them apart, and a way to merge one more.
function Names({ ns, name, may, toast, done }) {
  const [other, setOther] = useState("");
  const [problem, setProblem] = useState(null);
  const { value: rows, reload } = useLoaded(() => api.concepts({ namespace: ns, like: name, limit: 200 }), [ns, name]);
  const merged = rows?.find((one) => one.name === name)?.aliases || [];
  const act = (work, sentence, undo) => async (event) => {
    event?.preventDefault();
    setProblem(null);
    try {
      await work();
      toast(sentence, async () => { await undo(); done(); reload(); });
      setOther("");
      done();
      reload();
    } catch (error) {
      setProblem(error);
    }
  };
  const again = async () => { for (const one of merged) await api.merge(ns, one, name); };
  const b = other.trim();
  return html`${merged.length > 0 && html`<p class="hint">Also the name ${visible(merged.join(", "))}, merged by hand.</p>
      ${may.write && html`<p class="buttons"><button class="second" onClick=${act(() => api.split(ns, name), `${name} and ${merged.join(", ")} are names of different things again.`, again)}>Split</button></p>`}`}
    ${may.write && html`<form class="ask" onSubmit=${act(() => api.merge(ns, name, b), `${name} is taken for ${b} from now on.`, () => api.split(ns, name))}><label class="grow">Is the same as<input required value=${other} list="names" onInput=${(e) => setOther(e.target.value)} /></label><button class="second">Merge</button></form>`}
    <${Notice} error=${problem} />`;
}

async function begun(ns, { around, session, hops, limit }) {
  if (around) return joined(NOTHING, await api.graph({ namespace: ns, around, hops, limit }));
  if (!session) return null;
  const { memories } = await api.list({ namespace: ns, sessions: [session], limit: 30 });
  if (!memories.length) throw new Error(`No memory of this namespace is in the session “${session}”.`);
  let all = NOTHING;
  for (const { id } of memories) all = joined(all, await api.graph({ namespace: ns, around: id, hops: 1, limit: 10 }));
  return all;
}

const key = (edge) => `${edge.source}\n${edge.target}\n${edge.type}`;

function joined(before, graph) {
  const nodes = new Map(before.nodes);
  const edges = new Map(before.edges);
  for (const node of graph.nodes) nodes.set(node.id, { ...nodes.get(node.id), ...node });
  for (const edge of graph.edges) edges.set(key(edge), edge);
  return { nodes, edges, left_out: graph.graph.left_out };
}

// The graph with the paths by which the graph leg reached the hits of a question: over it, and beside it where it lacks them.
function withPaths(drawn, paths) {
  if (!paths.some((one) => one.steps.length)) return drawn;
  const nodes = new Map(drawn.nodes);
  const edges = new Map(drawn.edges);
  const titles = new Map(paths.map((one) => [one.id, one.title || one.snippet]));
  const memory = (id) => {
    const node = `m:${id}`;
    nodes.set(node, { id: node, kind: "memory", name: id, title: titles.get(id) || id, ...nodes.get(node), way: true });
    return node;
  };
  for (const { steps } of paths)
    for (const { start, by, to } of steps) {
      const source = start === QUESTION ? QUESTION : memory(start);
      if (start === QUESTION) nodes.set(QUESTION, { id: QUESTION, kind: QUESTION, name: QUESTION, title: "the question", start: true, way: true });
      const edge = { source, target: memory(to), type: by, way: true };
      edges.set(key(edge), edge);
    }
  return { ...drawn, nodes, edges };
}

// The graph without what only `id` holds in it.
function without(before, id) {
  const ends = new Map();
  for (const { source, target } of before.edges.values()) {
    ends.set(source, (ends.get(source) || new Set()).add(target));
    ends.set(target, (ends.get(target) || new Set()).add(source));
  }
  const gone = new Set([...(ends.get(id) || [])].filter((one) => ends.get(one).size === 1));
  return {
    nodes: new Map([...before.nodes].filter(([one]) => !gone.has(one))),
    edges: new Map([...before.edges].filter(([, { source, target }]) => !gone.has(source) && !gone.has(target))),
  };
}

function neighbours(drawn, id) {
  return [...drawn.edges.values()].filter(({ source, target }) => source === id || target === id)
    .map((edge) => ({ edge, other: drawn.nodes.get(edge.source === id ? edge.target : edge.source) })).filter(({ other }) => other);
}
