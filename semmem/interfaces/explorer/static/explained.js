// Why a memory is where it is in a recall, and what would let it in.
import { html, useLayoutEffect, useRef } from "/page/vendor/preact.js";
import { api } from "/page/api.js";
import { Bars, Notice, called, legClass, number, useLoaded, visible } from "/page/parts.js";

// `set(leg, what, value, regime)` moves a slider; a button does so with the value that would be enough.
export function Explained({ id, ns, question, limit, plan, openMemory, onClose, set }) {
  const { value: told, error, loading } = useLoaded(
    () => api.explain(id, { query: question, namespace: ns, limit, ...(plan ? { recipe: plan } : {}) }),
    [id, ns, question, limit, plan],
  );
  const { value: memory } = useLoaded(() => api.get(id, ns), [id, ns]);
  const box = useRef();
  const opener = useRef();
  useLayoutEffect(() => {
    opener.current = document.activeElement;
    box.current?.focus();
  }, []);
  const close = () => {
    opener.current?.focus();
    onClose();
  };
  return html`<section class="explained" tabindex="-1" ref=${box} aria-label=${`Why ${id}`} onKeyDown=${(e) => e.key === "Escape" && close()}>
    <header><h2>Why ${told && !told.returned ? "not " : ""}<button class="plain" onClick=${() => openMemory(id, ns)}>${called({ id, ...memory }, 60)}</button>?</h2>
      <button class="plain" aria-label="Close" onClick=${close}>✕</button></header>
    <${Notice} error=${error} />
    ${loading && !told && html`<p class="hint">Asking…</p>`}
    ${told && html`
      <p>${told.returned ? html`It is hit <b>${told.rank}</b> with score <b>${number(told.score)}</b>.`
        : told.rank ? html`It stands at place <b>${told.rank}</b> with score <b>${number(told.score)}</b>; the last of the first ${told.limit} has <b>${number(told.bar)}</b>.`
        : html`No leg found it, so no weight can bring it in. More hits make the legs look deeper; words of its text find it too.`}
        ${told.folded_into && ` It is shown under ${visible(told.folded_into)}, which has the same text.`}
        ${told.superseded_by && ` ${visible(told.superseded_by)} supersedes it.`}
        ${told.not_valid && ` ${told.not_valid}`}</p>
      ${told.score > 0 && html`<${Bars} components=${told.components} most=${Math.max(told.bar || 0, told.score)} />`}
      <table><thead><tr><th>leg</th><th>rank</th><th>gives</th><th>how</th><th title="The rank, weight or rank constant with which this leg alone brings it into the list">enough to enter</th></tr></thead>
        <tbody>${Object.values(told.legs).map((leg) => html`<tr>
          <td><i class=${`leg ${legClass(leg.leg)}`}></i>${leg.leg}</td><td>${leg.rank ?? "–"}</td><td>${number(leg.share)}</td><td>${leg.status}</td>
          <td>${Object.entries(leg.needs).map(([what, value]) => html`<${Need} ...${{ leg: leg.leg, what, value, set, regime: told.regime }} />`)}${Object.keys(leg.needs).length === 0 && "–"}</td></tr>`)}</tbody></table>
      ${told.path.length > 0 && html`<h3>Its path through the graph</h3><ol>${told.path.map((hop) => html`<li>${visible(hop)}</li>`)}</ol>`}`}
  </section>`;
}

function Need({ leg, what, value, set, regime }) {
  const told = `${what.replace("_", " ")} ${number(value, what === "weight" ? 3 : 0)}`;
  if (what === "rank") return html`<span>${told}</span> `;
  return html`<button type="button" class="small" title=${`Set the ${what.replace("_", " ")} of ${leg}`} onClick=${() => set(leg, what, value, regime)}>${told}</button> `;
}
