// The picture of a graph, drawn by Cytoscape.js; a list beside it has the same nodes for the keyboard.
import { html, useEffect, useRef } from "/page/vendor/preact.js";
import { visible } from "/page/parts.js";

const MANY = 800; // nodes from which only the first ones and those of paths may have a label
const CLOSEST = 4; // the largest zoom
const SLICE = 12; // milliseconds of work between two frames

export function Canvas({ shown, hidden, chosen, setChosen, expand }) {
  const box = useRef();
  const tip = useRef();
  const view = useRef(null);
  const acts = useRef({});
  const round = useRef(0);
  acts.current = { setChosen, expand, shown, hidden, chosen };
  useEffect(() => {
    let ended = false;
    import("/page/vendor/cytoscape.js").then(({ default: cytoscape }) => {
      if (ended) return;
      view.current = cytoscape({ container: box.current, minZoom: 0.1, maxZoom: CLOSEST, pixelRatio: "auto", hideEdgesOnViewport: true, textureOnViewport: true, hideLabelsOnViewport: true, style: style() });
      view.current.on("tap", "node", (event) => acts.current.setChosen(event.target.id()));
      view.current.on("mouseover", "node", (event) => named(tip.current, event.target));
      view.current.on("mouseout viewport", () => named(tip.current, null));
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
    const before = new Map(graph.nodes().map((one) => [one.id(), { ...one.position() }]));
    const points = seen.map(({ id }) => ({ id, ...before.get(id) }));
    round.current += 1;
    const mine = round.current;
    const { clientWidth: wide, clientHeight: high } = box.current;
    const at = await settled(points, lines.map(([, { source, target, way }]) => ({ source, target, way })), wide / high, () => mine === round.current && view.current);
    if (!at) return;
    const room = spots(seen, at, lines.filter(([, { way }]) => way), magnified([...at.values()], wide, high));
    graph.batch(() => { // the former picture stays until the places of the new one are known
      graph.elements().filter((one) => one.isEdge() || !ids.has(one.id())).remove();
      for (const node of seen.filter((one) => before.has(one.id))) graph.getElementById(node.id).data(dataOf(node));
      graph.add([
        ...seen.filter((one) => !before.has(one.id)).map((node) => ({ group: "nodes", data: dataOf(node), position: { ...at.get(node.id) } })),
        ...lines.map(([id, { source, target, type, way }]) => ({ group: "edges", data: { id: `e ${id}`, source, target, way: way ? 1 : 0, size: SIZE, label: way ? visible(type) : "" } })),
      ]);
      for (const [id, spot] of room) graph.getElementById(id).data(spot);
      graph.nodes().forEach((one) => { if (one.id() === acts.current.chosen) one.select(); });
    });
    const calm = seen.length > 400 || matchMedia("(prefers-reduced-motion: reduce)").matches;
    graph.maxZoom(LARGEST); // a picture of few nodes is not blown up; a person may
    graph.layout({ name: "preset", positions: (node) => at.get(node.id()), fit: true, padding: MARGIN, animate: !calm, animationDuration: 300, stop: () => graph.maxZoom(CLOSEST) }).run();
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
  return html`<div class="canvas" role="img" aria-label="The graph as a picture; the list beside it has the same names and memories"><div ref=${box}></div><span class="tip" hidden ref=${tip}></span></div>`;
}

const nameOf = ({ title, name }) => {
  const whole = title || name || "";
  return visible(whole.length > 28 ? `${whole.slice(0, 27)}…` : whole);
};
const dataOf = (node) => ({ id: node.id, kind: node.kind, sort: node.sort || "", name: nameOf(node), label: "", size: SIZE, across: "center", down: "bottom", start: node.start ? 1 : 0, way: node.way ? 1 : 0 });

// The name of the node under the pointer: an element over the picture, since another style would draw all of it again.
function named(tip, node) {
  tip.hidden = !node;
  if (!node) return;
  const { x, y } = node.renderedPosition();
  tip.textContent = node.data("name");
  tip.style.transform = `translate(${x}px, ${y + 10}px) translateX(-50%)`;
}

const MARGIN = 20; // around the picture, in pixels
const LARGEST = 1.6; // a label is drawn so many times as large where the whole picture is small, so that it can be read

function magnified(places, wide, high) {
  const across = (side) => Math.max(...places.map((one) => one[side])) - Math.min(...places.map((one) => one[side])) || 1;
  const zoom = Math.min((wide - 2 * MARGIN) / across("x"), (high - 2 * MARGIN) / across("y"));
  return Math.min(LARGEST, Math.max(1, 1 / zoom));
}

const SIZE = 10; // of a label, in the units of the picture, and the height of a line
const LINE = 13;
const half = (node) => (node.start ? 15 : 9); // of a node with its border, and a margin
const SIDES = [["center", "bottom"], ["center", "top"], ["right", "center"], ["left", "center"]];
const SIGN = { right: 1, left: -1, bottom: 1, top: -1, center: 0 };
const FONT = "sans-serif";
const pen = document.createElement("canvas").getContext("2d");
const widthOf = (label) => {
  pen.font = `bold ${SIZE}px ${FONT}`; // as that of a chosen node is drawn
  return pen.measureText(label).width;
};

// Where the label of each node has room: below, above, right or left of it, or nowhere; and whether that of a path's edge
// has room in its middle. Where it begins chooses first, then edges, names, and memories; each label is so many times as large as usual.
function spots(nodes, at, ways, times) {
  const [line, size] = [times * LINE, times * SIZE];
  const few = nodes.length <= MANY;
  const taken = few ? nodes.map((node) => around(at.get(node.id), half(node) - 2, half(node) - 2)) : [];
  const found = new Map(nodes.map(({ id }) => [id, { label: "", size }]));
  const free = (place) => !taken.some((one) => overlap(one, place)) && taken.push(place);
  const beside = (node) => {
    const [label, { x, y }] = [nameOf(node), at.get(node.id)];
    const [wide, high] = [(times * widthOf(label)) / 2, line / 2];
    const side = SIDES.find(([across, down]) => free(around({ x: x + SIGN[across] * (half(node) + wide), y: y + SIGN[down] * (half(node) + high) }, wide, high)));
    if (side) found.set(node.id, { label, across: side[0], down: side[1], size });
  };
  nodes.filter((node) => node.start).forEach(beside);
  for (const [id, { source, target, type }] of ways) {
    const [from, to] = [at.get(source), at.get(target)];
    const fits = free(around({ x: (from.x + to.x) / 2, y: (from.y + to.y) / 2 }, (0.9 * times * widthOf(type)) / 2, line / 2));
    found.set(`e ${id}`, { label: fits ? visible(type) : "", size: 0.9 * size });
  }
  const rank = (node) => (node.way ? 1e9 : 0) + (node.df || 0); // memories have no df
  nodes.filter((node) => !node.start && (node.way || few)).sort((one, other) => rank(other) - rank(one)).forEach(beside);
  return found;
}

const around = ({ x, y }, wide, high) => [x - wide, y - high, x + wide, y + high];
const overlap = (a, b) => a[0] < b[2] && b[0] < a[2] && a[1] < b[3] && b[1] < a[3];

// The places of nodes by d3-force, in a picture as wide for its height as its window, worked out in slices between frames; null where something newer is to be drawn.
async function settled(points, links, ratio, wanted) {
  await Promise.all(["dispatch", "timer", "quadtree"].map((name) => import(`/page/vendor/d3-${name}.js`)));
  await import("/page/vendor/d3-force.js");
  const { forceLink, forceManyBody, forceSimulation, forceX, forceY } = globalThis.d3;
  const ticks = points.length > MANY ? 60 : 200;
  const forces = forceSimulation(points).stop().alphaDecay(1 - 0.001 ** (1 / ticks))
    .force("links", forceLink(links).id((one) => one.id).distance((one) => (one.way ? 130 : 60))).force("apart", forceManyBody().strength(-160).distanceMax(900))
    .force("x", forceX().strength(0.06 / ratio)).force("y", forceY().strength(0.06 * ratio));
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

const shift = (side, by) => (node) => by[node.data(side)] || 0;

function style() {
  const of = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  const [ink, memory, name, edge, paper, accent] = ["--ink", "--part-dense", "--part-graph", "--edge", "--paper", "--accent"].map(of);
  return [
    { selector: "node", style: { label: "data(label)", "font-family": FONT, "font-size": "data(size)", "min-zoomed-font-size": 7, color: ink, "text-outline-color": paper, "text-outline-width": 2, "text-valign": "data(down)", "text-halign": "data(across)", "text-margin-y": shift("down", { bottom: 3, top: -3 }), "text-margin-x": shift("across", { right: 3, left: -3 }), width: 16, height: 16, "background-color": name } },
    { selector: "node[kind = 'memory']", style: { shape: "round-rectangle", "background-color": memory, width: 14, height: 14 } },
    { selector: "node[kind = 'concept'][sort != 'name']", style: { width: 10, height: 10, "background-color": paper, "border-width": 3, "border-color": name } },
    { selector: "node[start = 1]", style: { width: 24, height: 24, "border-width": 3, "border-color": ink } },
    { selector: "node[kind = 'question']", style: { shape: "diamond", "background-color": ink } },
    { selector: "node[way = 1]", style: { "border-width": 2, "border-color": accent } },
    { selector: "node:selected", style: { label: "data(name)", "border-width": 3, "border-color": ink, "font-weight": "bold", "text-background-color": paper, "text-background-opacity": 1, "z-index": 9 } },
    { selector: "edge", style: { width: 1, "line-color": edge, "curve-style": "haystack", events: "no" } }, // the pointer looks for nodes alone
    { selector: "edge[way = 1]", style: { width: 3, "line-color": accent, "curve-style": "bezier", "target-arrow-shape": "triangle", "target-arrow-color": accent, label: "data(label)", "font-family": FONT, "font-size": "data(size)", "min-zoomed-font-size": 6, color: ink, "text-outline-color": paper, "text-outline-width": 2 } },
  ];
}
