// Activity: the log of recalls. Who was given what, the same question asked again, and what was useful.
import { html, useLayoutEffect, useState } from "/page/vendor/preact.js";
import { api, call, choices, go } from "/page/api.js";
import { Field, Notice, number, useLoaded, visible, when } from "/page/parts.js";

const PAGE = 50;
const OUTCOMES = { given: "given", pinned: "given: pinned", left_out: "left out: no room", withheld: "withheld: not sure enough", excluded: "excluded by the caller" };
const log = (query, signal) => call("GET", "/v1/recalls", { query, signal });
const again = (id, namespace, then, signal) => call("GET", `/v1/recalls/${encodeURIComponent(id)}/replay`, { query: { namespace, then: then || undefined }, signal });

export function ActivityView({ ns, query, openMemory, may, toast }) {
  const [rows, setRows] = useState([]);
  const [cursor, setCursor] = useState(null);
  const [problem, setProblem] = useState(null);
  const asked = { namespace: ns, limit: PAGE, interface: query.interface, agent: query.agent, memory: query.memory };
  const first = useLoaded((signal) => log(asked, signal), [ns, query.interface, query.agent, query.memory]);
  const interfaces = useLoaded(() => choices("/v1/recalls", "interface"), []);
  useLayoutEffect(() => {
    if (!first.value) return;
    setRows(first.value.recalls);
    setCursor(first.value.cursor);
  }, [first.value]);
  const more = async () => {
    try {
      const page = await log({ ...asked, cursor });
      setRows((before) => [...before, ...page.recalls]);
      setCursor(page.cursor);
    } catch (error) {
      setProblem(error);
    }
  };
  const set = (changes) => go("activity", { ns, ...query, ...changes }, { replace: true });
  const narrowed = query.interface || query.agent || query.memory;
  return html`<section aria-labelledby="activity-title">
    <h1 id="activity-title">Activity</h1>
    <form class="ask filters" onSubmit=${(e) => e.preventDefault()}>
      <label>Asked through<select value=${query.interface || ""} onChange=${(e) => set({ interface: e.target.value })}>
        <option value="">anything</option>${(interfaces.value || [query.interface].filter(Boolean)).map((one) => html`<option value=${one}>${one}</option>`)}</select></label>
      <${Field} label="By the agent" value=${query.agent || ""} set=${(agent) => set({ agent })} />
      <${Field} label="That gave the memory" placeholder="its id" value=${query.memory || ""} set=${(memory) => set({ memory })} />
    </form>
    <p class="buttons"><button class="second" onClick=${first.reload}>Look again</button></p>
    <${Notice} error=${first.error || problem} />
    ${first.loading && html`<p class="hint" role="status">Reading…</p>`}
    ${!first.loading && !first.error && rows.length === 0 && html`<p class="notice">${narrowed ? "No logged recall meets these conditions." : "No recall is logged here. Recalls are logged if the setting recall_log is on: start the server with SEMMEM_RECALL_LOG=true."}</p>`}
    <ol class="versions">${rows.map((entry) => html`<${Entry} key=${entry.id} ...${{ entry, ns, openMemory, may, toast }} />`)}</ol>
    ${cursor && html`<p><button class="second" onClick=${more}>Show more</button></p>`}</section>`;
}

function Entry({ entry, ns, openMemory, may, toast }) {
  const [judged, setJudged] = useState({});
  const [replay, setReplay] = useState(null);
  const [problem, setProblem] = useState(null);
  const given = entry.hits.filter((hit) => hit.outcome === "given" || hit.outcome === "pinned");
  const judge = async (hit, useful) => {
    setProblem(null);
    try {
      await api.feedback({ recall_id: entry.id, namespace: ns, [useful ? "useful" : "not_useful"]: [hit.id] });
      setJudged((before) => ({ ...before, [hit.id]: useful }));
      toast(`${hit.id} is noted as ${useful ? "useful" : "not useful"}; python -m eval reads it.`);
    } catch (error) {
      setProblem(error);
    }
  };
  const ask = (then) => async () => {
    setProblem(null);
    try {
      setReplay(await again(entry.id, ns, then));
    } catch (error) {
      setProblem(error);
    }
  };
  return html`<li data-id=${entry.id}>
    <details><summary><span dir="auto">${visible(entry.question)}</span>
      <span class="under">${when(entry.at)} · ${entry.verb} through ${entry.interface}${entry.agent ? ` by ${visible(entry.agent)}` : ""} · ${given.length} given${entry.hits.length > given.length ? `, ${entry.hits.length - given.length} not` : ""}</span></summary>
      <p class="under">recipe ${visible(entry.recipe || "")}${entry.confidence === undefined ? "" : ` · confidence ${number(entry.confidence, 2)}`}${Object.keys(entry.degraded || {}).length ? ` · degraded: ${Object.keys(entry.degraded).join(", ")}` : ""}</p>
      <${Notice} error=${problem} />
      ${entry.hits.length === 0 && html`<p class="hint">No memory was found.</p>`}
      <div class="scroll"><table><thead><tr><th>rank</th><th>memory</th><th>what became of it</th><th>score</th><th>useful?</th></tr></thead>
        <tbody>${entry.hits.map((hit) => html`<${Row} key=${hit.id} ...${{ hit, useful: hit.id in judged ? judged[hit.id] : hit.useful, openMemory, may, judge }} />`)}</tbody></table></div>
      <p class="buttons"><button onClick=${ask(false)}>Replay now</button><button class="second" onClick=${ask(true)}>Replay as of then</button>
        <button class="second" onClick=${() => go("recall", { ns, q: entry.question })}>Open in Recall</button></p>
      ${replay && html`<${Differences} ...${{ replay, openMemory }} />`}</details></li>`;
}

function Row({ hit, useful, openMemory, may, judge }) {
  const said = useful === null || useful === undefined ? "" : useful ? "useful" : "not useful";
  return html`<tr><td>${hit.rank ?? "–"}</td>
    <td><button class="plain" onClick=${() => openMemory(hit.id, hit.namespace)}>${visible(hit.id)}</button></td>
    <td>${OUTCOMES[hit.outcome] || "not returned"}</td><td>${hit.score === null ? "–" : number(hit.score)}</td>
    <td>${said && html`<b>${said}</b> `}${may.write && hit.outcome !== "excluded" && html`<button class="small" aria-label=${`${hit.id} was useful`} onClick=${() => judge(hit, true)}>Useful</button>
      <button class="small" aria-label=${`${hit.id} was not useful`} onClick=${() => judge(hit, false)}>Not useful</button>`}</td></tr>`;
}

const CHANGES = { same: "same place", moved: "moved", new: "new", gone: "no hit any more", forgotten: "forgotten" };

function Differences({ replay, openMemory }) {
  const of = replay.as_of ? `the memories of ${when(replay.as_of)}` : "the memories of today";
  return html`<div role="status"><p><b>${replay.is_same ? "The same memories have the same ranks" : "The ranks differ"}</b>: in the log, and in ${of}.</p>
    ${replay.memories.length > 0 && html`<div class="scroll"><table><thead><tr><th>then</th><th>now</th><th>memory</th><th>change</th></tr></thead><tbody>
      ${replay.memories.map((one) => html`<tr><td>${one.rank_then ?? "–"}</td><td>${one.rank_now ?? "–"}</td>
        <td><button class="plain" onClick=${() => openMemory(one.id, one.namespace)}>${visible(one.id)}</button></td>
        <td class=${one.change === "same" ? "" : "warn"}>${CHANGES[one.change]}</td></tr>`)}</tbody></table></div>`}</div>`;
}
