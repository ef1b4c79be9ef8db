// Graph: names and memories around a hit, a name or a session, drawn by Cytoscape.js and listed for the keyboard.
import { html, useEffect, useMemo, useRef, useState } from "/page/vendor/preact.js";
import { api, go } from "/page/api.js";
import { Notice, useLoaded, visible } from "/page/parts.js";

const HUB = 12; // neighbours from which a name counts as a hub

export function GraphView({ ns, query, openMemory, may, toast }) {
  const [text, setText] = useState(query.around || "");
  const [drawn, setDrawn] = useState({ nodes: new Map(), edges: new Map() });
  const [hubs, setHubs] = useState(true);
  const [chosen, setChosen] = useState(null);
  const [problem, setProblem] = useState(null);
  useEffect(() => setText(query.around || ""), [query.around]);
  const hops = Number(query.hops) || 2;
  const first = useLoaded(async () => (query.around ? api.graph({ namespace: ns, around: query.around, hops, limit: 300 }) : null), [ns, query.around, hops]);
  const names = useLoaded((signal) => api.concepts({ namespace: ns, like: text && text !== query.around ? text : undefined, limit: 40 }, signal), [ns, text]);
  useEffect(() => {
    setChosen(null);
    if (!first.value) return setDrawn({ nodes: new Map(), edges: new Map() });
    setDrawn(joined({ nodes: new Map(), edges: new Map() }, first.value));
    setChosen(first.value.nodes.find((node) => node.start)?.id || null);
  }, [first.value]);
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
    for (const { source, target } of drawn.edges.values()) for (const end of [source, target]) count.set(end, (count.get(end) || 0) + 1);
    return count;
  }, [drawn]);
  const node = chosen && drawn.nodes.get(chosen);
  const around = node ? neighbours(drawn, chosen) : [];
  return html`<section class="graph" aria-labelledby="graph-title"><h1 id="graph-title">Graph</h1>
    <form class="ask" onSubmit=${(e) => { e.preventDefault(); go("graph", { ns, around: text.trim(), hops: query.hops }); }}>
      <label class="grow">Around a name or the id of a memory<input value=${text} required list="names" onInput=${(e) => setText(e.target.value)} /></label>
      <datalist id="names">${(names.value || []).map((one) => html`<option value=${one.name} />`)}</datalist>
      <label>Hops<select value=${String(hops)} onChange=${(e) => go("graph", { ns, around: query.around, hops: e.target.value })}>${["1", "2", "3"].map((one) => html`<option value=${one}>${one}</option>`)}</select></label>
      <button>Show</button>
      <label class="check"><input type="checkbox" checked=${!hubs} onChange=${(e) => setHubs(!e.target.checked)} /> hide hubs</label></form>
    <${Notice} error=${first.error || problem} />
    ${!query.around && html`<p class="hint">The names that most memories mention:</p>
      <p class="names">${(names.value || []).map((one) => html`<button class="second" onClick=${() => go("graph", { ns, around: one.name })}>${visible(one.name)} <small>${one.df}</small></button>`)}</p>`}
    ${query.around && html`<div class="columns">
      <div><${Canvas} ...${{ drawn, degrees, hubs, chosen, setChosen, expand }} />
        <p class="facts">${drawn.nodes.size} nodes, ${drawn.edges.size} edges${first.value?.graph.left_out ? `, ${first.value.graph.left_out} more not read` : ""}</p></div>
      <aside>${node && html`<h2>${visible(node.title || node.name)}</h2>
        ${node.kind === "memory" ? html`<p dir="auto">${visible((node.text || "").slice(0, 400))}</p>` : html`<p class="hint">${node.sort || node.kind}, in ${node.df ?? "some"} memories${node.also ? `; also ${visible(node.also)}` : ""}</p>`}
        <p class="buttons">${node.kind === "memory" && html`<button onClick=${() => openMemory(node.name, ns)}>Open</button>`}
          <button class="second" onClick=${() => expand(node)}>Expand</button><button class="second" onClick=${() => collapse(node)}>Collapse</button></p>
        ${node.kind !== "memory" && may.write && html`<${Merge} ...${{ ns, name: node.name, toast, done: first.reload }} />`}
        <h3>Beside it</h3><ul class="beside">${around.map(({ other, edge }) => html`<li><button class="plain" onClick=${() => setChosen(other.id)}>${visible((other.title || other.name).slice(0, 80))}</button> <small>${edge.role || edge.type}</small></li>`)}</ul>`}</aside></div>`}
  </section>`;
}

function Merge({ ns, name, toast, done }) {
  const [other, setOther] = useState("");
  const [problem, setProblem] = useState(null);
  const merge = async (event) => {
    event.preventDefault();
    setProblem(null);
    const b = other.trim();
    try {
      await api.merge(ns, name, b);
      toast(`${name} is taken for ${b} from now on.`, async () => { await api.split(ns, name); done(); });
      setOther("");
      done();
    } catch (error) {
      setProblem(error);
    }
  };
  return html`<form class="ask" onSubmit=${merge}><label class="grow">Is the same as<input required value=${other} list="names" onInput=${(e) => setOther(e.target.value)} /></label><button class="second">Merge</button></form><${Notice} error=${problem} />`;
}

const key = (edge) => `${edge.source}\n${edge.target}\n${edge.type}`;

function joined(before, graph) {
  const nodes = new Map(before.nodes);
  const edges = new Map(before.edges);
  for (const node of graph.nodes) nodes.set(node.id, { ...nodes.get(node.id), ...node });
  for (const edge of graph.edges) edges.set(key(edge), edge);
  return { nodes, edges };
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

function Canvas({ drawn, degrees, hubs, chosen, setChosen, expand }) {
  const box = useRef();
  const view = useRef(null);
  const acts = useRef({});
  acts.current = { setChosen, expand, drawn };
  useEffect(() => {
    let ended = false;
    import("/page/vendor/cytoscape.js").then(({ default: cytoscape }) => {
      if (ended) return;
      view.current = cytoscape({ container: box.current, minZoom: 0.1, maxZoom: 4, pixelRatio: "auto", hideEdgesOnViewport: true, textureOnViewport: true, style: style() });
      view.current.on("tap", "node", (event) => acts.current.setChosen(event.target.id()));
      view.current.on("mouseover", "node", (event) => event.target.addClass("near"));
      view.current.on("mouseout", "node", (event) => event.target.removeClass("near"));
      view.current.on("dbltap", "node", (event) => acts.current.expand(acts.current.drawn.nodes.get(event.target.id())));
      draw();
    });
    const dark = matchMedia("(prefers-color-scheme: dark)");
    const restyle = () => view.current?.style(style());
    dark.addEventListener("change", restyle);
    return () => {
      ended = true;
      dark.removeEventListener("change", restyle);
      view.current?.destroy();
      view.current = null;
    };
  }, []);
  const draw = () => {
    const graph = view.current;
    if (!graph) return;
    const { nodes, edges } = acts.current.drawn;
    const hidden = new Set(hubs ? [] : [...nodes.values()].filter((node) => node.kind !== "memory" && !node.start && (degrees.get(node.id) || 0) >= HUB).map((node) => node.id));
    const shown = [...nodes.values()].filter((node) => !hidden.has(node.id));
    const ids = new Set(shown.map((node) => node.id));
    const lines = [...edges.entries()].filter(([, { source, target }]) => ids.has(source) && ids.has(target));
    graph.batch(() => {
      graph.elements().filter((one) => (one.isNode() ? !ids.has(one.id()) : true)).remove();
      for (const node of shown) {
        const label = visible((node.title || node.name || "").slice(0, 28));
        if (graph.getElementById(node.id).empty()) graph.add({ group: "nodes", data: { id: node.id, label, kind: node.kind, start: node.start ? 1 : 0 } });
      }
      lines.forEach(([id, edge]) => graph.add({ group: "edges", data: { id: `e ${id}`, source: edge.source, target: edge.target } }));
    });
    const calm = shown.length > 400 || matchMedia("(prefers-reduced-motion: reduce)").matches;
    graph.layout({ name: shown.length > 800 ? "concentric" : "cose", animate: calm ? false : "end", animationDuration: 300, randomize: false, nodeRepulsion: () => 9000, idealEdgeLength: () => 70, numIter: shown.length > 300 ? 200 : 700, fit: true, padding: 20, concentric: (node) => node.degree(), levelWidth: () => 4 }).run();
  };
  useEffect(draw, [drawn, hubs]);
  useEffect(() => {
    view.current?.nodes().unselect();
    if (chosen) view.current?.getElementById(chosen).select();
  }, [chosen, drawn]);
  return html`<div class="canvas" ref=${box} role="img" aria-label="The graph as a picture; the list beside it has the same names and memories"></div>`;
}

function style() {
  const of = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  const [ink, memory, name, soft, paper] = ["--ink", "--dense", "--graph", "--soft", "--paper"].map(of);
  return [
    { selector: "node", style: { label: "data(label)", "font-size": 10, "min-zoomed-font-size": 7, color: ink, "text-outline-color": paper, "text-outline-width": 2, "text-valign": "bottom", "text-margin-y": 3, width: 16, height: 16, "background-color": name } },
    { selector: "node[kind = 'memory']", style: { shape: "round-rectangle", "background-color": memory, width: 14, height: 14, "text-opacity": 0 } },
    { selector: "node[kind = 'memory'][start = 1], node[kind = 'memory']:selected, node.near", style: { "text-opacity": 1 } },
    { selector: "node[start = 1]", style: { width: 24, height: 24, "border-width": 3, "border-color": ink } },
    { selector: "node:selected", style: { "border-width": 3, "border-color": ink, "font-size": 13, "font-weight": "bold" } },
    { selector: "edge", style: { width: 1, "line-color": soft, opacity: 0.45, "curve-style": "haystack" } },
  ];
}
