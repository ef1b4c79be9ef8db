// Recall: a question, its hits with their scores, why and why not, and the same question with other weights.
import { html, useEffect, useLayoutEffect, useMemo, useRef, useState } from "/page/vendor/preact.js";
import { api, go, note, place } from "/page/api.js";
import { Badge, Bars, Field, Legend, Marked, More, Notice, Windowed, called, legClass, meaning, number, useFollowed, useLoaded, spoken, visible, when } from "/page/parts.js";
import { Explained } from "/page/explained.js";
import { Wanted } from "/page/memory.js";

const LIMIT = 10;
const PAGE = 1000; // hits of one answer; of more, the next ones are asked for when the end of the list comes near
const MOST = 10000;
const DIGITS = 4; // of a weight, as many as the certificate of a reach tells
const NAMED = 5; // other namespaces that an empty one names
const KEPT = 100; // a shallower list is meant so by the recipe and stays; one of this depth or more goes to the end
const SLOW = 80; // milliseconds without a change before the reach of a recipe is worked out

export function RecallView({ ns, query, openMemory, may, toast, changed: edits, namespaces }) {
  const [text, setText] = useState(query.q || "");
  const wanted = Number(query.limit) || LIMIT;
  const limit = Math.min(wanted, PAGE);
  const [plan, setPlan] = useState(null); // the recipe as the sliders make it; null is that of the namespace
  useLayoutEffect(() => setText(query.q || ""), [query.q]);
  useLayoutEffect(() => setPlan(null), [ns, query.q]);
  const base = useLoaded(async (signal) => (query.q ? api.recall({ query: query.q, namespace: ns, limit }, signal) : null), [ns, query.q, limit, edits]);
  const long = wanted > PAGE && base.value; // then all pages are cut from lists of one depth, so none lacks or repeats a hit
  const recipe = long ? toTheEnd(plan || base.value.plan) : plan;
  const empty = useLoaded(async (signal) => !(await api.list({ namespace: ns, limit: 1 }, signal)).memories.length && ns, [ns, edits]).value === ns;
  const against = useLoaded(async () => (query.q ? contrary(await api.contradictions(ns)) : null), [ns, query.q, edits]).value;
  const changed = useFollowed(
    async () => (query.q && recipe ? api.reweigh({ query: query.q, namespace: ns, limit, recipe }) : null),
    [limit, plan, long], `${ns}\n${query.q}`,
  );
  const kept = useRef(false); // the settings are those of the namespace now: its own answer takes the place of the sliders
  useLayoutEffect(() => {
    if (kept.current) setPlan(null);
    kept.current = false;
  }, [base.value]);
  useLayoutEffect(() => { // the server keeps the lists of this question, so the first move of a slider asks no leg either
    if (!base.value) return;
    note(ns, query.q, base.value.hits);
    api.reweigh({ query: query.q, namespace: ns, limit }).catch(() => null);
  }, [base.value]);
  const shown = (recipe && changed.value) || base.value;
  const search = (event) => {
    event.preventDefault();
    if (text.trim() === query.q) base.reload();
    else go("recall", { ns, q: text.trim(), limit: place().query.limit }); // which may have changed since the last frame
  };
  return html`<section aria-labelledby="recall-title">
    <h1 id="recall-title">Recall</h1>
    <form class="ask" role="search" onSubmit=${search}>
      <label class="grow">Question<input type="search" value=${text} autofocus required maxlength="4000"
        placeholder="Ask as an agent would" onInput=${(e) => setText(e.target.value)} /></label>
      <${Field} label="Hits" type="number" min="1" max=${MOST} value=${String(wanted)} set=${(limit) => go("recall", { ns, q: place().query.q, limit })} />
      <button>Recall</button>
    </form>
    <${Notice} error=${base.error || changed.error} />
    ${!query.q && html`<p class="hint">Each hit shows the legs that found it. The sliders ask again with other weights, and say which leg can bring in a memory of its own.</p>`}
    ${empty && html`<p class="notice">The namespace ${visible(ns)} holds no memory yet. Write the first one in <a href=${`#/browse?ns=${encodeURIComponent(ns)}`}>Browse</a>${namespaces.some((one) => one !== ns) && html`, or look at ${namespaces.filter((one) => one !== ns).slice(0, NAMED).map((one, at) => html`${at > 0 && ", "}<a href=${`#/recall?${new URLSearchParams({ ns: one, q: query.q || "" })}`}>${visible(one)}</a>`)}`}.</p>`}
    ${shown && !empty && html`<div class="columns">
      <div><${Answer} ...${{ answer: shown, before: plan ? base.value : null, ns, question: query.q, asks: query.why, limit, plan, setPlan, openMemory, may, toast, upTo: long && shown === changed.value ? wanted : limit, recall: base.value?.id, against, busy: base.loading || changed.loading }} /></div>
      <aside><${Replay} ...${{ ns, limit, answer: base.value || shown, plan, setPlan, may, toast, kept, reload: base.reload }} /></aside>
    </div>`}
    ${base.loading && !shown && query.q && html`<p class="hint" role="status">Recalling…</p>`}
  </section>`;
}

const nameOf = (hit) => hit.id + (hit.part || "");

function Answer({ answer, before, ns, question, asks, limit, plan, setPlan, openMemory, may, toast, upTo, recall, against, busy }) {
  const [rest, setRest] = useState(null);
  const [problem, setProblem] = useState(null);
  const [why, setWhy] = useState(null);
  useLayoutEffect(() => setWhy(asks || null), [question, ns, asks]);
  const most = Math.max(...answer.hits.map((hit) => Object.values(hit.components).reduce((sum, value) => sum + value, 0)), 0);
  const names = [...new Set([...Object.keys(answer.plan.weights), ...answer.hits.flatMap((hit) => Object.keys(hit.components))])];
  const degraded = Object.entries(answer.degraded);
  const set = (leg, what, value, regime) => {
    const from = plan || answer.plan;
    const own = SETTINGS[what === "weight" ? "weight" : "constant"];
    const enough = what === "weight" ? Math.ceil(value * 1000) / 1000 : Math.floor(value);
    setPlan(own.set(from, leg, own.isOwn(from, leg, regime) ? regime : "", enough, regimesOf(from)));
  };
  const after = rest?.of === answer ? rest : { hits: [], read: answer.hits.length, ended: false }; // the hits after those of the answer
  const hits = [...answer.hits, ...after.hits];
  const more = async () => {
    const page = await api.reweigh({ query: question, namespace: ns, limit: Math.min(PAGE, upTo - after.read), offset: after.read, recipe: answer.plan });
    const seen = new Set(hits.map(nameOf)); // a write, or a namespace that came into memory, may have moved one meanwhile
    setProblem(null);
    setRest({ of: answer, hits: [...after.hits, ...page.hits.filter((hit) => !seen.has(nameOf(hit)))], read: after.read + page.hits.length, ended: page.hits.length === 0 });
  };
  const list = useMemo(() => { // a move of a slider draws the sliders alone, and the hits when their answer is there
    const places = new Map((before?.hits || []).map((hit) => [hit.id, hit.rank]));
    const named = (id) => spoken(hits.find((hit) => hit.id === id)?.memory || { id });
    return html`<${Hits} hits=${hits} row=${(hit, at) => html`<${Hit} key=${nameOf(hit)} ...${{
      hit, at, all: hits.length, most, moved: before ? (places.has(hit.id) ? places.get(hit.id) - hit.rank : "new") : null,
      open: () => openMemory(hit.id, hit.namespace), explain: () => setWhy(hit.id), named, contradicts: against?.get(hit.id) || [], recall, may, toast, ns,
    }} />`} />`;
  }, [answer, rest, before, against, recall, ns, may.write]);
  return html`
    <p class="facts" role="status" aria-busy=${busy}>
      <span><b>${hits.length.toLocaleString("en")}</b>${` of ${answer.total_is_exact ? "" : "at least "}${answer.total.toLocaleString("en")} found, ${answer.scope_size.toLocaleString("en")} memories searched`}</span>
      <details><summary>confidence <b>${number(answer.confidence, 2)}</b></summary>how sure the recall is that some memory answers the question, from 0 to 1</details>
      <span title=${kindOf(answer.regime)}>question: ${answer.regime}</span>
      <details><summary>${number(1000 * answer.timings.total, 1)} ms</summary>${Object.entries(answer.timings).filter(([step]) => step !== "total").map(([step, s]) => `${step} ${number(1000 * s, 1)} ms`).join(", ") || "fused from the lists of the last recall"}</details>
    </p>
    ${degraded.map(([leg, reason]) => html`<p class="notice bad">The leg ${leg} did not answer: ${reason}</p>`)}
    ${answer.hits.length === 0 && html`<p class="notice">${answer.withheld ? `${answer.withheld} hits are below the floor of confidence.` : "No memory of this namespace shares a word, a meaning or a name with the question."}</p>`}
    <${Legend} names=${names} />
    ${list}
    <${Notice} error=${problem} />
    ${after.read >= PAGE && after.read < Math.min(upTo, answer.total) && !after.ended && html`<${More} more=${more} failed=${setProblem} />`}
    <${Wanted} key=${ns} label="Why not another memory?" verb="Explain" ...${{ ns, take: ({ id: found }) => setWhy(found) }} />
    ${why && html`<${Explained} key=${why} ...${{ id: why, ns, question, limit, plan, openMemory, set, onClose: () => setWhy(null) }} />`}`;
}

// The contradictions that wait for a decision, by each of their memories.
function contrary(links) {
  const of = new Map();
  for (const { from_id: one, to_id: other } of links) for (const [id, to] of [[one, other], [other, one]]) of.set(id, [...(of.get(id) || []), to]);
  return of;
}

// Hits glide to their new place: each is moved back to where it was, then let go.
function Hits({ hits, row }) {
  const list = useRef();
  const before = useRef(new Map());
  useLayoutEffect(() => { // before the paint, and all places are read before anything moves, so the page is laid out once
    const calm = matchMedia("(prefers-reduced-motion: reduce)").matches;
    const items = [...list.current.querySelectorAll(".hit")].map((item) => [item, item.dataset.id, item.offsetTop]);
    for (const [item, id, top] of calm ? [] : items) {
      const old = before.current.get(id);
      if (old !== undefined && old !== top) item.animate([{ transform: `translateY(${old - top}px)` }, { transform: "none" }], { duration: 250, easing: "ease-out" });
    }
    before.current = new Map(items.map(([, id, top]) => [id, top]));
  });
  return html`<div ref=${list}><${Windowed} tag="ol" class="hits" items=${hits} usual=${130} row=${row} /></div>`;
}

function Hit({ hit, at, all, most, moved, open, explain, named, contradicts, recall, may, toast, ns }) {
  const { memory } = hit;
  const whole = called(memory) === visible(hit.snippet); // a short memory without a title: its text is all there is to show
  const judge = async (verdict) => {
    await api.feedback({ recall_id: recall, namespace: ns, [verdict]: [hit.id] });
    toast(`Recorded: ${spoken(memory)} was ${verdict === "useful" ? "useful" : "not useful"}. It changes no ranking; python -m eval reads it.`);
  };
  return html`<li class=${`hit ${hit.superseded_by ? "old" : ""}`} data-id=${nameOf(hit)} data-at=${at} aria-setsize=${all} aria-posinset=${at + 1}>
    <div class="place"><b>${hit.rank}</b>${moved === "new" ? html`<span class="up">new</span>` : moved ? html`<span class=${moved > 0 ? "up" : "down"}>${moved > 0 ? "▲" : "▼"}${Math.abs(moved)}</span>` : null}</div>
    <div class="body">
      <h2><button class="plain title" onClick=${open}>${whole ? html`<${Marked} text=${hit.snippet} matches=${hit.matches} />` : called(memory)}</button>
        ${memory.pinned && html`<span class="tag">pinned</span>`}
        ${memory.source_type && html`<span class="tag" title="Who the text comes from">${memory.source_type}</span>`}
        ${hit.superseded_by && html`<span class="tag warn">superseded by ${named(hit.superseded_by)}</span>`}
        ${contradicts.length > 0 && html`<a class="tag warn" href=${`#/inbox?ns=${encodeURIComponent(ns)}`}>contradicts ${contradicts.map(named).join(", ")}</a>`}</h2>
      ${!whole && html`<p class="snippet"><${Marked} text=${hit.snippet} matches=${hit.matches} /></p>`}
      <${Bars} components=${hit.components} most=${most} />
      <p class="under"><b>${number(hit.score)}</b>
        ${Object.entries(hit.legs).map(([leg, found]) => html`<span class="rank"><i class=${`leg ${legClass(leg)}`}></i>${leg} #${found.rank}</span>`)}
        <span>${visible([memory.author, memory.session && `session ${memory.session}`, when(memory.created_at)].filter(Boolean).join(" · ")).slice(0, 200)}</span>
        <button class="plain" aria-label=${`Why? ${spoken(memory)}`} onClick=${explain}>Why?</button>
        <button class="plain" aria-label=${`Graph around ${spoken(memory)}`} onClick=${() => go("graph", { ns: hit.namespace, around: hit.id })}>Graph</button>
        ${recall && may.write && html`<button class="plain" onClick=${() => judge("useful")}>Useful</button><button class="plain" onClick=${() => judge("not_useful")}>Not useful</button>`}
      </p>
    </div></li>`;
}

const KINDS = {
  named: "it names something that the graph knows", unnamed: "it names nothing that the graph knows",
  anchored: "it names nothing, but a rare word of it leads the graph", described: "the memories say it in other words",
};
const kindOf = (regime) => (KINDS[regime] ? `${regime} (${KINDS[regime]})` : regime);

// Each kind of setting: what holds for a leg in a regime, which of it is of that regime alone, and a plan with another value.
// Without a regime it is what holds for all questions.
const SETTINGS = {
  weight: {
    of: (plan, leg, regime) => plan.regime_weights[regime]?.[leg] ?? plan.weights[leg],
    isOwn: (plan, leg, regime) => plan.regime_weights[regime]?.[leg] !== undefined,
    set: (plan, leg, regime, value) => (regime
      ? { ...plan, regime_weights: filled({ ...plan.regime_weights, [regime]: without({ ...plan.regime_weights[regime], [leg]: value }, leg, value === plan.weights[leg]) }) }
      : { ...plan, weights: { ...plan.weights, [leg]: value } }),
  },
  constant: {
    of: (plan, leg, regime) => (typeof plan.rank_constants[leg] === "object" ? plan.rank_constants[leg][regime] : plan.rank_constants[leg]),
    isOwn: (plan, leg) => typeof plan.rank_constants[leg] === "object",
    set: (plan, leg, regime, value, regimes) => {
      const each = Object.fromEntries(regimes.map((one) => [one, one === regime ? value : SETTINGS.constant.of(plan, leg, one)]));
      const one = new Set(Object.values(each)).size === 1 && !(typeof plan.rank_constants[leg] === "object");
      return { ...plan, rank_constants: { ...plan.rank_constants, [leg]: regime && !one ? each : value } };
    },
  },
  slot: {
    of: (plan, leg, regime) => ({ ...plan.reserve, ...plan.regime_reserve[regime] })[leg] || 0,
    isOwn: (plan, leg, regime) => plan.regime_reserve[regime]?.[leg] !== undefined,
    set: (plan, leg, regime, place) => {
      if (!regime) return { ...plan, reserve: without({ ...plan.reserve, [leg]: place }, leg, place === 0) };
      const places = { ...plan.regime_reserve[regime], [leg]: place }; // 0 takes the place away from this kind alone
      return { ...plan, regime_reserve: { ...plan.regime_reserve, [regime]: places } };
    },
  },
};

// The recipe with lists as deep as the page shows hits, but for a leg that it keeps shallow on purpose.
const toTheEnd = (plan) => ({ ...plan, depths: { ...plan.depths, ...Object.fromEntries(Object.keys(plan.weights).filter((leg) => !(plan.depths[leg] < KEPT)).map((leg) => [leg, MOST])) } });

const without = (table, key, when) => Object.fromEntries(Object.entries(table).filter(([name]) => !(when && name === key)));
const filled = (tables) => Object.fromEntries(Object.entries(tables).filter(([, table]) => Object.keys(table).length));
const regimesOf = (plan) => [...new Set(Object.values(plan.rank_constants).flatMap((one) => (typeof one === "object" ? Object.keys(one) : [])))].sort();

// The settings that differ from the recipe which the namespace has now, as PATCH /v1/settings takes them.
export function changesOf(from, to) {
  const changes = {};
  const differs = (one, other) => JSON.stringify(one) !== JSON.stringify(other);
  for (const name of ["weights", "rank_constants"]) {
    const different = Object.entries(to[name]).filter(([key, value]) => differs(value, from[name][key]));
    if (different.length) changes[name] = Object.fromEntries(different);
  }
  for (const name of ["reserve", "regime_weights", "regime_reserve", "prior"]) if (differs(to[name], from[name])) changes[name] = to[name];
  return changes;
}

const SLIDERS = [
  { kind: "weight", label: "weight", max: 5, step: 0.05, least: 0.001 },
  { kind: "constant", label: "rank constant", max: 100, step: 1, least: 0 },
  { kind: "slot", label: "guaranteed slot", max: 0, step: 1, least: 0 }, // up to the number of hits
];

function Replay({ ns, limit, answer, plan, setPlan, may, toast, kept, reload }) {
  const now = plan || answer.plan;
  const regimes = regimesOf(now);
  const [wanted, setWanted] = useState("");
  const regime = regimes.includes(wanted) ? wanted : ""; // whose settings are shown; "": those of all questions
  const asked = [regime, answer.regime, ...regimes].find((one) => regimes.includes(one)) || answer.regime; // a graph that is off tells no regime
  const [slow, setSlow] = useState(now);
  useEffect(() => {
    const timer = setTimeout(() => setSlow(now), SLOW);
    return () => clearTimeout(timer);
  }, [now]);
  const reach = useLoaded((signal) => api.reach({ recipe: slow, k: limit, scope_size: answer.scope_size }, signal), [slow, limit]);
  const classes = reach.value?.regimes || {}; // a recipe whose legs know no regimes has one for all questions
  const legs = (classes[asked] || Object.values(classes)[0])?.legs || {};
  const changes = useMemo(() => changesOf(answer.plan, now), [answer.plan, now]);
  const any = Object.keys(changes).length > 0;
  const keep = async () => {
    const before = (await api.settings(ns)).settings;
    await api.configure(ns, changes);
    const after = (await api.settings(ns)).settings;
    kept.current = true;
    reload();
    toast(`Kept for the namespace ${ns}: every recall there uses it from now on.`, async () => {
      const different = Object.keys(after).filter((name) => JSON.stringify(after[name]) !== JSON.stringify(before[name]));
      const added = different.filter((name) => !(name in before));
      const replaced = different.filter((name) => name in before);
      if (added.length) await api.unset(ns, added);
      if (replaced.length) await api.configure(ns, nested(replaced, before));
      reload();
      toast("Undone: the namespace has its earlier settings again.");
    });
  };
  return html`<section class="reweigh" aria-labelledby="reweigh-title">
    <h2 id="reweigh-title">What if a leg counted more?</h2>
    <p class="hint">Question: ${kindOf(answer.regime)}. First ${limit} hits.</p>
    ${regimes.length > 0 && html`<label>Settings for<select value=${regime} onChange=${(e) => setWanted(e.target.value)}>
      <option value="">all questions</option>${regimes.map((one) => html`<option value=${one}>${one} questions</option>`)}</select></label>
      ${regime && html`<p class="hint">A question is ${kindOf(regime)}. Questions of other kinds keep their settings.</p>`}`}
    <${Notice} error=${reach.error} />
    ${Object.keys(now.weights).map((leg) => html`<fieldset key=${leg}>
      <legend><i class=${`leg ${legClass(leg)}`}></i>${leg}
        ${now.weights[leg] === 0 ? html`<${Badge} kind="off" />` : legs[leg] && html`<${Badge} kind=${legs[leg].class} />`}</legend>
      ${SLIDERS.filter(({ kind }) => kind !== "weight" || !regime || now.weights[leg] > 0).map(({ kind, label, max, step, least }) => (!regime && SETTINGS[kind].isOwn(now, leg, asked)
        ? html`<p class="own" key=${kind}>${label} ${shortened(SETTINGS[kind].of(now, leg, asked))} for ${asked} questions <button type="button" class="small" aria-label=${`Change the ${label} of ${leg}`} onClick=${() => setWanted(asked)}>Change</button></p>`
        : html`<${Slider} key=${kind} label=${label} value=${SETTINGS[kind].of(now, leg, regime)} min=${regime ? least : 0} max=${max || limit} step=${step} base=${SETTINGS[kind].of(answer.plan, leg, regime)}
          mark=${kind === "weight" ? legs[leg]?.possible_above_weight : null} set=${(value) => setPlan(SETTINGS[kind].set(now, leg, regime, value, regimes))} />`))}
      ${now.weights[leg] > 0 && Object.keys(classes).length > 1 && html`<p class="kinds">${Object.entries(classes).map(([one, of]) => of.legs[leg] && html`<span>${one}<${Badge} kind=${of.legs[leg].class} /></span>`)}</p>`}
      ${legs[leg] && now.weights[leg] > 0 && html`<details><summary>${meaning(legs[leg].class)}</summary>
        <p class="certificate">${legs[leg].certificate}</p>
        ${legs[leg].possible_above_weight !== null && html`<p>A memory that it alone finds can enter above weight ${number(legs[leg].possible_above_weight, 4)}${SETTINGS.slot.of(now, leg, asked) > 0 ? "; its guaranteed slot lets its first find in at any weight" : ""}.</p>`}</details>`}
    </fieldset>`)}
    <label class="check"><input type="checkbox" checked=${now.prior} onChange=${(e) => setPlan({ ...now, prior: e.target.checked })} /> importance counts</label>
    <p class="hint">The importance of a memory (0 to 1, among its fields) multiplies its score${regime ? "; a recipe has one such switch, for questions of every kind" : ""}.</p>
    <p class="buttons">
      <button disabled=${!any || !may.admin} onClick=${keep} title=${may.admin ? "" : "Your key may not change the settings of a namespace"}>Keep for ${visible(ns)}</button>
      <button class="second" disabled=${!plan} onClick=${() => setPlan(null)}>Reset</button></p>
    <p class="hint"><a href=${`#/health?ns=${encodeURIComponent(ns)}`}>What this namespace keeps now</a>, each with a button that removes it.</p>
  </section>`;
}

export function nested(names, values) {
  const table = {};
  for (const name of names) {
    const [group, key] = name.split(".");
    if (key === undefined) table[name] = values[name];
    else (table[group] ??= {})[key] = values[name];
  }
  return table;
}

const shortened = (value) => Number(value.toFixed(DIGITS));

function Slider({ label, value, min, max, step, base, mark, set }) {
  const [typed, setTyped] = useState(null); // what stands in the field while somebody types
  const shown = shortened(value);
  const type = (event) => {
    setTyped(event.target.value);
    const number = event.target.valueAsNumber;
    if (number >= min && number <= max) set(number);
  };
  return html`<label class="slider">${label}
    <input type="range" min=${min && step} max=${max} step=${step} value=${shown} style=${{ "--mark": mark > 0 && mark < max ? `${(100 * mark) / max}%` : "-9px" }}
      onInput=${(e) => set(Number(e.target.value))} />
    <input type="number" min=${min} max=${max} step="any" value=${typed ?? shown} aria-label=${`${label} as a number`} onInput=${type} onBlur=${() => setTyped(null)} />
    ${shown !== shortened(base) ? html`<button type="button" class="plain" title=${`Back to ${number(base, 2)}`} aria-label=${`${label} back to ${number(base, 2)}`} onClick=${() => set(base)}>↺</button>` : html`<span></span>`}</label>`;
}
