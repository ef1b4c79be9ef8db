// The picture of a graph, drawn by Cytoscape.js; a list beside it has the same nodes for the keyboard.
import { html, useEffect, useRef } from "/page/vendor/preact.js";
import { visible } from "/page/parts.js";

const MANY = 800; // nodes from which only the first ones and those of paths have a label
const SLICE = 12; // milliseconds of work between two frames

export function Canvas({ shown, hidden, chosen, setChosen, expand }) {
  const box = useRef();
  const view = useRef(null);
  const acts = useRef({});
  const round = useRef(0);
  acts.current = { setChosen, expand, shown, hidden };
  useEffect(() => {
    let ended = false;
    import("/page/vendor/cytoscape.js").then(({ default: cytoscape }) => {
      if (ended) return;
      view.current = cytoscape({ container: box.current, minZoom: 0.1, maxZoom: 4, pixelRatio: "auto", hideEdgesOnViewport: true, textureOnViewport: true, hideLabelsOnViewport: true, style: style() });
      view.current.on("tap", "node", (event) => acts.current.setChosen(event.target.id()));
      view.current.on("mouseover", "node", (event) => event.target.addClass("near"));
      view.current.on("mouseout", "node", (event) => event.target.removeClass("near"));
      view.current.on("dbltap", "node", (event) => acts.current.expand(acts.current.shown.nodes.get(event.target.id())));
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
  const draw = async () => {
    const graph = view.current;
    if (!graph) return;
    const { shown: { nodes, edges }, hidden: out } = acts.current;
    const seen = [...nodes.values()].filter((node) => !out.has(node.id));
    const ids = new Set(seen.map((node) => node.id));
    const lines = [...edges.entries()].filter(([, { source, target }]) => ids.has(source) && ids.has(target));
    const many = seen.length > MANY;
    const before = new Map(graph.nodes().map((one) => [one.id(), { ...one.position() }]));
    graph.batch(() => {
      graph.elements().filter((one) => one.isEdge() || !ids.has(one.id())).remove();
      for (const node of seen.filter((one) => before.has(one.id))) graph.getElementById(node.id).data(dataOf(node, many));
      graph.add([
        ...seen.filter((one) => !before.has(one.id)).map((node) => ({ group: "nodes", data: dataOf(node, many) })),
        ...lines.map(([id, { source, target, type, way }]) => ({ group: "edges", data: { id: `e ${id}`, source, target, way: way ? 1 : 0, label: way ? visible(type) : "" } })),
      ]);
    });
    const points = seen.map(({ id }) => ({ id, ...before.get(id) }));
    round.current += 1;
    const mine = round.current;
    const at = await settled(points, lines.map(([, { source, target, way }]) => ({ source, target, way })), () => mine === round.current && view.current);
    if (!at) return;
    const calm = seen.length > 400 || matchMedia("(prefers-reduced-motion: reduce)").matches;
    graph.layout({ name: "preset", positions: (node) => at.get(node.id()), fit: true, padding: 20, animate: !calm, animationDuration: 300 }).run();
  };
  useEffect(() => { draw(); }, [shown, hidden]);
  useEffect(() => {
    const graph = view.current;
    graph?.nodes().unselect();
    const one = chosen && graph?.getElementById(chosen);
    if (!one || one.empty()) return;
    one.select();
    const { x1, y1, x2, y2 } = graph.extent();
    const { x, y } = one.position();
    if (x < x1 || x > x2 || y < y1 || y > y2) graph.center(one);
  }, [chosen, shown]);
  return html`<div class="canvas" ref=${box} role="img" aria-label="The graph as a picture; the list beside it has the same names and memories"></div>`;
}

const dataOf = ({ id, title, name, kind, start, way }, many) => ({ id, kind, label: many && !start && !way ? "" : visible((title || name || "").slice(0, 28)), start: start ? 1 : 0, way: way ? 1 : 0 });

// The places of nodes by d3-force, worked out in slices between frames; null where something newer is to be drawn.
async function settled(points, links, wanted) {
  await Promise.all(["dispatch", "timer", "quadtree"].map((name) => import(`/page/vendor/d3-${name}.js`)));
  await import("/page/vendor/d3-force.js");
  const { forceLink, forceManyBody, forceSimulation, forceX, forceY } = globalThis.d3;
  const ticks = points.length > MANY ? 60 : 200;
  const forces = forceSimulation(points).stop().alphaDecay(1 - 0.001 ** (1 / ticks))
    .force("links", forceLink(links).id((one) => one.id).distance((one) => (one.way ? 130 : 60))).force("apart", forceManyBody().strength(-160).distanceMax(900))
    .force("x", forceX().strength(0.06)).force("y", forceY().strength(0.06));
  let paused = performance.now();
  for (let tick = 0; tick < ticks; tick += 1) {
    forces.tick();
    if (performance.now() - paused < SLICE) continue;
    await new Promise((go) => setTimeout(go));
    if (!wanted()) return null;
    paused = performance.now();
  }
  return wanted() ? new Map(points.map(({ id, x, y }) => [id, { x, y }])) : null;
}

function style() {
  const of = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  const [ink, memory, name, soft, paper, accent] = ["--ink", "--dense", "--graph", "--soft", "--paper", "--accent"].map(of);
  return [
    { selector: "node", style: { label: "data(label)", "font-size": 10, "min-zoomed-font-size": 7, color: ink, "text-outline-color": paper, "text-outline-width": 2, "text-valign": "bottom", "text-margin-y": 3, width: 16, height: 16, "background-color": name } },
    { selector: "node[kind = 'memory']", style: { shape: "round-rectangle", "background-color": memory, width: 14, height: 14, "text-opacity": 0 } },
    { selector: "node[kind = 'memory'][start = 1], node[kind = 'memory']:selected, node.near", style: { "text-opacity": 1 } },
    { selector: "node[start = 1]", style: { width: 24, height: 24, "border-width": 3, "border-color": ink } },
    { selector: "node:selected", style: { "border-width": 3, "border-color": ink, "font-size": 13, "font-weight": "bold" } },
    { selector: "node[kind = 'question']", style: { shape: "diamond", "background-color": ink } },
    { selector: "node[way = 1]", style: { "text-opacity": 1, "border-width": 2, "border-color": accent } },
    { selector: "edge", style: { width: 1, "line-color": soft, opacity: 0.45, "curve-style": "haystack" } },
    { selector: "edge[way = 1]", style: { width: 3, "line-color": accent, opacity: 1, "curve-style": "bezier", "target-arrow-shape": "triangle", "target-arrow-color": accent, label: "data(label)", "font-size": 9, color: ink, "text-outline-color": paper, "text-outline-width": 2 } },
  ];
}
