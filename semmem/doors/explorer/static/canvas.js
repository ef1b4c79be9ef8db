// The picture of a graph, drawn by Cytoscape.js; a list beside it has the same nodes for the keyboard.
import { html, useEffect, useRef } from "/page/vendor/preact.js";
import { visible } from "/page/parts.js";

export function Canvas({ shown, hidden, chosen, setChosen, expand }) {
  const box = useRef();
  const view = useRef(null);
  const acts = useRef({});
  acts.current = { setChosen, expand, shown, hidden };
  useEffect(() => {
    let ended = false;
    import("/page/vendor/cytoscape.js").then(({ default: cytoscape }) => {
      if (ended) return;
      view.current = cytoscape({ container: box.current, minZoom: 0.1, maxZoom: 4, pixelRatio: "auto", hideEdgesOnViewport: true, textureOnViewport: true, style: style() });
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
  const draw = () => {
    const graph = view.current;
    if (!graph) return;
    const { shown: { nodes, edges }, hidden: out } = acts.current;
    const seen = [...nodes.values()].filter((node) => !out.has(node.id));
    const ids = new Set(seen.map((node) => node.id));
    const lines = [...edges.entries()].filter(([, { source, target }]) => ids.has(source) && ids.has(target));
    graph.batch(() => {
      graph.elements().filter((one) => one.isEdge() || !ids.has(one.id())).remove();
      const had = new Set(graph.nodes().map((one) => one.id()));
      for (const node of seen.filter((one) => had.has(one.id))) graph.getElementById(node.id).data(dataOf(node));
      graph.add([
        ...seen.filter((one) => !had.has(one.id)).map((node) => ({ group: "nodes", data: dataOf(node) })),
        ...lines.map(([id, { source, target, type, way }]) => ({ group: "edges", data: { id: `e ${id}`, source, target, way: way ? 1 : 0, label: way ? visible(type) : "" } })),
      ]);
    });
    graph.layout(layout(seen.length)).run();
  };
  useEffect(draw, [shown, hidden]);
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

const dataOf = ({ id, title, name, kind, start, way }) => ({ id, kind, label: visible((title || name || "").slice(0, 28)), start: start ? 1 : 0, way: way ? 1 : 0 });

// A spring layout takes the square of the nodes; a large graph stands in rings, the best connected inside.
function layout(size) {
  const still = size > 400 || matchMedia("(prefers-reduced-motion: reduce)").matches;
  if (size > 800) return { name: "concentric", animate: false, fit: true, padding: 20, minNodeSpacing: 4, concentric: (node) => node.degree(), levelWidth: () => 4 };
  return { name: "cose", animate: still ? false : "end", animationDuration: 300, randomize: false, nodeRepulsion: () => 9000, idealEdgeLength: () => 70, numIter: size > 300 ? 200 : 700, fit: true, padding: 20 };
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
