// Evaluation: a run of `python -m eval`, read from its files in the browser, and its questions asked again here.
import { html, useMemo, useState } from "/page/vendor/preact.js";
import { api, go } from "/page/api.js";
import { Notice, number, useLoaded, visible } from "/page/parts.js";

const FILES = ["result.json", "per-question.jsonl", "questions.jsonl"];
const MOST = 30; // questions that are shown of those that moved
let opened = null; // the run stays open while somebody looks at other views

export function EvaluationView({ ns, openMemory }) {
  const [run, setRun] = useState(opened);
  const [problem, setProblem] = useState(null);
  const [over, setOver] = useState(false);
  const [chosen, setChosen] = useState(0);
  const [group, setGroup] = useState("headline");
  const [metric, setMetric] = useState(opened?.result.metrics[0]);
  const take = async (files) => {
    setOver(false);
    try {
      opened = await readRun(files, run);
      setRun(opened);
      setMetric(opened.result.metrics[0]);
      setProblem(null);
    } catch (error) {
      setProblem(error);
    }
  };
  const named = useLoaded(() => api.runs(), []);
  const openNamed = async (name) => {
    const blobs = await Promise.all(FILES.map((file) => api.runFile(name, file)));
    await take(FILES.flatMap((file, at) => (blobs[at] ? [new File([blobs[at]], file)] : [])));
  };
  const rows = run?.result.comparisons.filter((one) => one.group === group && one.metric === metric) || [];
  const most = Math.max(0.001, ...rows.flatMap(({ paired }) => (paired ? [Math.abs(paired.low), Math.abs(paired.high)] : [])));
  const groups = [...new Set(run?.result.comparisons.map((one) => one.group) || [])];
  return html`<section aria-labelledby="evaluation-title"><h1 id="evaluation-title">Evaluation</h1>
    <p class="hint">Open the folder of a run of <code>python -m eval</code>, such as eval/runs/NAME. Its files stay in this browser. The command semmem explore --runs FOLDER offers the runs of a folder here.</p>
    <p class="buttons"><label class=${`button drop ${over ? "over" : ""}`} onDragOver=${(e) => { e.preventDefault(); setOver(true); }} onDragLeave=${() => setOver(false)} onDrop=${async (e) => { e.preventDefault(); take(await dropped(e.dataTransfer)); }}>Open a folder, or drop it here
        <input type="file" webkitdirectory class="hidden" onChange=${(e) => take([...e.target.files])} /></label>
      ${named.value?.length > 0 && html`<label>Or a run of the folder<select value="" onChange=${(e) => e.target.value && openNamed(e.target.value)}><option value="">choose one</option>${named.value.map((name) => html`<option value=${name}>${visible(name)}</option>`)}</select></label>`}
      <label class="button second">Open result.json<input type="file" multiple accept=".json,.jsonl" class="hidden" onChange=${(e) => take([...e.target.files])} /></label></p>
    <${Notice} error=${problem} />
    ${run && html`<p class="facts"><span><b>${visible(run.result.command)}</b></span><span>${visible(run.result.corpus.name)}: ${run.result.corpus.queries} questions, ${run.result.corpus.memories} memories</span><span>${visible(run.result.environment?.embedder)}</span></p>
      <div class="ask"><label>Questions<select value=${group} onChange=${(e) => { setGroup(e.target.value); setChosen(0); }}>${groups.map((one) => html`<option value=${one}>${one}</option>`)}</select></label>
        <label>Metric<select value=${metric} onChange=${(e) => { setMetric(e.target.value); setChosen(0); }}>${run.result.metrics.map((one) => html`<option value=${one}>${one}</option>`)}</select></label></div>
      ${rows.length === 0 && html`<p class="notice">This run compares nothing by ${metric} there.</p>`}
      <div class="scroll"><table class="plots"><thead><tr><th>comparison</th><th>verdict</th><th>difference, with its interval</th><th>won, lost</th><th>what it shows</th></tr></thead><tbody>
        ${rows.map((one, at) => html`<tr key=${one.name + at} class=${at === chosen ? "in" : ""}><td><button class="plain" aria-pressed=${at === chosen} onClick=${() => setChosen(at)}>${visible(one.name)}</button></td>
          <td><span class=${`badge ${one.verdict === "helps" ? "guaranteed" : one.verdict === "hurts" ? "off" : ""}`}>${visible(one.verdict)}</span></td>
          <td>${one.paired ? html`<${Interval} ...${one.paired} most=${most} />` : "–"}</td><td>${one.paired ? `${one.paired.won}, ${one.paired.lost} of ${one.paired.n}` : "–"}</td><td class="certificate">${visible(one.sentence)}</td></tr>`)}</tbody></table></div>
      ${rows[chosen] && html`<${Moved} key=${`${chosen} ${group} ${metric}`} ...${{ run, comparison: rows[chosen], metric, ns, openMemory }} />`}`}
  </section>`;
}

// A difference as a point and its confidence interval as a line; the middle is no difference.
function Interval({ delta, low, high, most }) {
  const x = (value) => 110 + (100 * value) / most;
  const told = `${number(delta)}, from ${number(low)} to ${number(high)}`;
  return html`<div class="interval"><svg viewBox="0 0 220 20" width="220" height="20" role="img" aria-label=${told}>
    <line x1="110" x2="110" y1="0" y2="20" class="axis" /><line x1=${x(low)} x2=${x(high)} y1="10" y2="10" class="span" /><circle cx=${x(delta)} cy="10" r="4.5" class="point" /></svg><small>${told}</small></div>`;
}

function Moved({ run, comparison, metric, ns, openMemory }) {
  const [replayed, setReplayed] = useState(null);
  const moved = useMemo(() => {
    const [before, after] = [run.values.get(comparison.base), run.values.get(comparison.other)];
    if (!before || !after) return null;
    return [...after].filter(([id, row]) => before.has(id) && !row.apart && (comparison.group === "headline" || row.stratum === comparison.group))
      .map(([id, row]) => ({ id, from: before.get(id)[metric], to: row[metric] })).filter(({ from, to }) => from !== to)
      .sort((a, b) => Math.abs(b.to - b.from) - Math.abs(a.to - a.from) || (a.id < b.id ? -1 : 1));
  }, [run, comparison, metric]);
  const recipes = [comparison.base, comparison.other].map((name) => run.result.conditions[name]?.recipe);
  return html`<h2>The questions that moved most: ${visible(comparison.name)}</h2>
    ${moved === null && html`<p class="notice">Their values are in private/per-question.jsonl of the run and their texts in private/questions.jsonl: open the whole folder.</p>`}
    ${moved?.length === 0 && html`<p class="notice">No question moved.</p>`}
    ${moved?.length > MOST && html`<p class="hint">The first ${MOST} of ${moved.length}.</p>`}
    <ul class="pairs">${moved?.slice(0, MOST).map(({ id, from, to }) => {
      const asked = run.questions.get(id);
      return html`<li key=${id} class="moved"><p><b class=${to > from ? "up" : "down"}>${number(from)} → ${number(to)}</b> <span dir="auto">${visible(asked?.question || id)}</span></p>
        ${asked && recipes[0] && recipes[1] && html`<p class="buttons"><button class="second" aria-expanded=${replayed === id} onClick=${() => setReplayed(replayed === id ? null : id)}>Ask again in ${visible(ns)}</button>
          <button class="plain" onClick=${() => go("recall", { ns, q: asked.question })}>Open in Recall</button></p>`}
        ${replayed === id && html`<${Both} ...${{ asked, recipes, names: [comparison.base, comparison.other], ns, openMemory }} />`}</li>`;
    })}</ul>`;
}

// One question by both recipes, side by side; the memories that answer it are marked.
function Both({ asked, recipes, names, ns, openMemory }) {
  const { value, error } = useLoaded((signal) => Promise.all(recipes.map((recipe) => api.reweigh({ query: asked.question, namespace: ns, limit: 10, recipe }, signal))), [asked, ns]);
  const gold = new Set(asked.gold_ids);
  return html`<${Notice} error=${error} />${!value && !error && html`<p class="hint" role="status">Recalling…</p>`}
    ${value && html`<div class="pair">${value.map((answer, at) => html`<div class="side" key=${names[at]}><h3>${visible(names[at])}</h3>
      ${answer.hits.length === 0 ? html`<p class="hint">No memory of ${visible(ns)} answers; is it the namespace of the run?</p>` : html`<ol>${answer.hits.map((hit) => html`<li><button class="plain" onClick=${() => openMemory(hit.id, hit.namespace)}>${visible(hit.title || hit.id)}</button>${gold.has(hit.id) && html`<span class="tag gold">answers it</span>`}<span class="first">${visible(hit.snippet.slice(0, 160))}</span></li>`)}</ol>`}</div>`)}</div>`}`;
}

async function readRun(files, before) {
  const named = new Map(files.map((file) => [file.name, file]));
  let result = before?.result;
  if (named.has("result.json")) result = JSON.parse(await named.get("result.json").text());
  if (!result) throw new Error("There is no result.json among these files; open the folder that python -m eval wrote.");
  if (!Array.isArray(result.comparisons) || !Array.isArray(result.metrics)) throw new Error("This result.json compares no conditions; open the folder of a run or an ablation of python -m eval.");
  const lines = async (name) => (named.has(name) ? (await named.get(name).text()).split("\n").filter(Boolean).map((line) => JSON.parse(line)) : []);
  const fresh = named.has("result.json");
  const values = new Map(fresh ? [] : before.values);
  for (const row of await lines("per-question.jsonl")) {
    if (!values.has(row.condition)) values.set(row.condition, new Map());
    values.get(row.condition).set(row.id, row);
  }
  const questions = new Map([...(fresh ? [] : before.questions), ...(await lines("questions.jsonl")).map((row) => [row.id, row])]);
  return { result, values, questions };
}

// The files of what was dropped; a folder is read with the folders in it.
async function dropped(transfer) {
  const read = async (entry) => {
    if (entry.isFile) return [await new Promise((good, bad) => entry.file(good, bad))];
    const reader = entry.createReader();
    const all = [];
    for (let some; (some = await new Promise((good, bad) => reader.readEntries(good, bad))).length; ) all.push(...some);
    return (await Promise.all(all.map(read))).flat();
  };
  return (await Promise.all([...transfer.items].map((item) => item.webkitGetAsEntry()).filter(Boolean).map(read))).flat();
}
