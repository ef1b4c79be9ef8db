// Parts that several views are made of. Texts of memories are set as text, never as HTML.
// An effect that sets a state, moves the focus or opens a dialog is a layout effect: another one runs after the next paint,
// and on a busy machine undoes there what somebody typed or chose meanwhile.
import { html, useCallback, useEffect, useLayoutEffect, useRef, useState } from "/page/vendor/preact.js";

// The class with the colour of a leg, or of another part of a score; the style has one for each that semmem names.
const classes = new Map(); // looked up once: reading a style lays the page out anew
let others = 0;
export function legClass(name) {
  if (!classes.has(name)) {
    const known = getComputedStyle(document.documentElement).getPropertyValue(`--part-${name}`);
    classes.set(name, known ? name : `other${others++ % 3}`);
  }
  return classes.get(name);
}

export const number = (value, digits = 3) =>
  value === null || value === undefined ? "–" : Number(value).toFixed(digits).replace(/^(-?)0\./, "$1.");

export function when(time) {
  return time ? time.slice(0, 16).replace("T", " ") : "";
}

// Bidirectional marks and control characters are shown as codes, so that no text can pass for another.
const HIDDEN = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u200b-\u200f\u202a-\u202e\u2066-\u2069\ufeff]/g;
export const visible = (text) =>
  (text ?? "").replace(HIDDEN, (mark) => `⟨${mark.codePointAt(0).toString(16).padStart(4, "0")}⟩`);

// What a memory is called: its title or the id that somebody gave it; an id that semmem made says nothing, so its text begins.
const MADE = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;
const begun = (text, most) => (text.length > most ? `${text.slice(0, most - 1)}…` : text);
export const called = ({ id, title, text }, most = 140) => visible(title || (text && MADE.test(id) ? begun(text, most) : id));
export const spoken = (memory) => (MADE.test(memory.id) ? `“${called(memory, 50)}”` : visible(memory.id)); // in a sentence

export const warned = ({ warning, warnings = [warning] }) => (warnings[0] ? ` ${warnings[0]}` : ""); // of an answer: what its sentence adds

export function Marked({ text, matches = [] }) {
  const parts = [];
  let at = 0;
  for (const [from, to] of matches) {
    if (from < at) continue;
    parts.push(visible(text.slice(at, from)), html`<mark>${visible(text.slice(from, to))}</mark>`);
    at = to;
  }
  return html`<span dir="auto">${parts}${visible(text.slice(at))}</span>`;
}

// A text of megabytes is shown by its beginning until somebody asks for the rest.
export function LongText({ text, most = 4000 }) {
  const [whole, setWhole] = useState(false);
  if (whole || text.length <= most) return html`<div class="text" dir="auto">${visible(text)}</div>`;
  return html`<div class="text" dir="auto">${visible(text.slice(0, most))}…
    <button class="plain" onClick=${() => setWhole(true)}>Show all ${text.length.toLocaleString("en")} characters</button></div>`;
}

export function Bars({ components, most }) {
  const parts = Object.entries(components).filter(([, value]) => value > 0);
  const sum = parts.reduce((total, [, value]) => total + value, 0);
  const words = parts.map(([name, value]) => `${name} ${number(value)}`).join(", ");
  return html`<div class="bars" role="img" aria-label=${`Score: ${words}`} title=${words}>
    <div class="bar" style=${{ width: `${(100 * sum) / (most || 1)}%` }}>
      ${parts.map(([name, value]) => html`<i class=${`leg ${legClass(name)}`} style=${{ width: `${(100 * value) / sum}%` }}></i>`)}
    </div>
  </div>`;
}

export function Legend({ names }) {
  return html`<ul class="legend" aria-label="Colours of the legs">
    ${names.map((name) => html`<li><i class=${`leg ${legClass(name)}`}></i>${name}</li>`)}</ul>`;
}

const MEANING = {
  guaranteed: "its first find is always in the list",
  possible: "a memory that it alone finds can enter the list",
  "boost-only": "no memory that it alone finds can enter the list; it reorders the finds of others",
  off: "its weight is 0",
  unreachable: "it returns nothing here",
};
export function Badge({ kind }) {
  return html`<span class=${`badge ${kind}`} title=${MEANING[kind] || ""}>${kind}</span>`;
}
export const meaning = (kind) => MEANING[kind] || "";

export function Notice({ error, children }) {
  if (error) return html`<p class="notice bad" role="alert">${error.message || String(error)}</p>`;
  return children ? html`<p class="notice">${children}</p>` : null;
}

// Runs `work` when `keys` change; the newest answer wins, an older one that comes late is dropped.
export function useLoaded(work, keys) {
  const [state, setState] = useState({ value: null, error: null, loading: true });
  const [again, setAgain] = useState(0);
  useLayoutEffect(() => {
    const controller = new AbortController();
    setState((before) => ({ ...before, loading: true }));
    work(controller.signal).then(
      (value) => controller.signal.aborted || setState({ value, error: null, loading: false }),
      (error) => controller.signal.aborted || setState((before) => ({ value: before.value, error, loading: false })),
    );
    return () => controller.abort();
  }, [...keys, again]);
  useLayoutEffect(() => { // refused because the session had ended: asked again in the next one
    if (state.error?.status !== 401) return undefined;
    const anew = () => setAgain((count) => count + 1);
    window.addEventListener("signed-in", anew);
    return () => window.removeEventListener("signed-in", anew);
  }, [state.error]);
  return { ...state, reload: useCallback(() => setAgain((count) => count + 1), []) };
}

// Runs `work` when `keys` change, for keys that change faster than answers come: the answer under way is still shown, then
// the newest keys are asked for. Values belong to one `scope`; what comes late for another is dropped.
export function useFollowed(work, keys, scope) {
  const [state, setState] = useState({ value: null, error: null, loading: false, scope });
  const now = useRef({ next: null, busy: false });
  const follow = async () => {
    if (now.current.busy) return;
    now.current.busy = true;
    while (now.current.next) {
      const [run, of] = now.current.next;
      now.current.next = null;
      const [value, error] = await run().then((answer) => [answer, null], (failed) => [null, failed]);
      setState((before) => ({ value: error ? before.value : value, error, loading: now.current.next !== null, scope: of }));
    }
    now.current.busy = false;
  };
  useLayoutEffect(() => {
    now.current.next = [work, scope];
    setState((before) => ({ ...before, loading: true }));
    follow();
  }, [...keys, scope]);
  return state.scope === scope ? state : { value: null, error: null, loading: state.loading };
}

// A long list has only those rows in the page that are near the window; the others are room above and below.
const FEW = 200; // rows that stand in the page all together
const NEAR = 800; // pixels beyond the window
export function Windowed({ items, usual, tag: Tag, row, ...more }) {
  const box = useRef();
  const heights = useRef([]);
  const [[from, to], setRange] = useState([0, FEW]);
  const tall = (at) => heights.current[at] ?? usual;
  const look = () => {
    if (!box.current || items.length <= FEW) return;
    const above = -box.current.getBoundingClientRect().top - NEAR;
    let [at, y] = [0, 0];
    while (at < items.length - 1 && y + tall(at) < above) y += tall(at++);
    const first = at;
    while (at < items.length && y < above + innerHeight + 2 * NEAR) y += tall(at++);
    setRange((before) => (before[0] === first && before[1] === at ? before : [first, at]));
  };
  const latest = useRef(look);
  latest.current = look;
  useEffect(() => {
    const moved = () => requestAnimationFrame(() => latest.current());
    for (const name of ["scroll", "resize"]) window.addEventListener(name, moved, { passive: true });
    return () => { for (const name of ["scroll", "resize"]) window.removeEventListener(name, moved); };
  }, []);
  const [a, b] = items.length <= FEW ? [0, items.length] : [Math.min(from, items.length), Math.min(to, items.length)];
  useEffect(() => {
    for (const one of box.current.children) if (one.dataset.at) heights.current[one.dataset.at] = one.offsetHeight;
    look();
  });
  const room = (start, end) => {
    let sum = 0;
    for (let at = start; at < end; at += 1) sum += tall(at);
    if (sum === 0) return null;
    const style = { height: `${sum}px` };
    return Tag === "tbody" ? html`<tr key=${`room ${start === 0}`} aria-hidden="true" class="room" style=${style}><td colspan="9"></td></tr>` : html`<li key=${`room ${start === 0}`} aria-hidden="true" class="room" style=${style}></li>`;
  };
  return html`<${Tag} ref=${box} ...${more}>${room(0, a)}${items.slice(a, b).map((item, at) => row(item, a + at))}${room(b, items.length)}<//>`;
}

// Reads the next page when its button comes near the window; the button works by itself too, and alone after a failure.
export function More({ more, failed }) {
  const button = useRef();
  const busy = useRef(false);
  const broken = useRef(false);
  const look = useRef();
  const read = async () => {
    if (busy.current) return;
    busy.current = true;
    broken.current = false;
    await more().catch((error) => { broken.current = true; failed(error); });
    busy.current = false;
  };
  look.current = () => { if (!broken.current && button.current && button.current.getBoundingClientRect().top < innerHeight + 400) read(); };
  useEffect(() => {
    const moved = () => look.current();
    for (const name of ["scroll", "resize"]) window.addEventListener(name, moved, { passive: true });
    return () => { for (const name of ["scroll", "resize"]) window.removeEventListener(name, moved); };
  }, []);
  useEffect(() => look.current());
  return html`<p><button class="second" ref=${button} onClick=${read}>More</button></p>`;
}

export function Dialog({ title, onClose, foot, children }) {
  const box = useRef();
  useLayoutEffect(() => {
    const dialog = box.current;
    const before = document.activeElement;
    dialog.showModal();
    return () => { // a dialog that closed has given the focus back already, and somebody may have moved it since
      if (document.activeElement === document.body || dialog.contains(document.activeElement)) before?.focus?.();
    };
  }, []);
  return html`<dialog ref=${box} aria-label=${title} onClose=${onClose} onClick=${(e) => e.target === box.current && box.current.close()}>
    <div class="inside"><header><h2>${title}</h2>
      <button class="plain" aria-label="Close" onClick=${() => box.current.close()}>✕</button></header>${children}</div>${foot}</dialog>`;
}

// Where the focused element goes away, or what it did disables it, the nearest thing around it has the focus: Tab goes on there.
export function keepFocus(root) {
  let around = [];
  root.addEventListener("focusin", ({ target }) => {
    around = [];
    for (let one = target; one && one !== root; one = one.parentElement) around.push(one);
  });
  new MutationObserver(() => {
    const [focused] = around;
    if (!focused || (focused.isConnected && !focused.disabled)) return;
    if (![document.body, focused].includes(document.activeElement)) return;
    const stays = around.slice(1).find((one) => one.isConnected && one.checkVisibility() && one.localName !== "dialog");
    around = [];
    if (!stays) return;
    if (!stays.hasAttribute("tabindex")) stays.tabIndex = -1;
    stays.focus({ preventScroll: true });
  }).observe(root, { childList: true, subtree: true, attributeFilter: ["disabled"] });
}

// A sentence at the foot of the page, with an undo where there is one.
export function useToast() {
  const [toast, setToast] = useState(null);
  const show = useCallback((sentence, undo) => setToast({ sentence, undo, at: Date.now() }), []);
  useEffect(() => {
    if (!toast || toast.undo) return undefined; // what can be undone waits until somebody closes it
    const timer = setTimeout(() => setToast(null), 12000);
    return () => clearTimeout(timer);
  }, [toast]);
  const shown = html`<div class="toast" role="status">${toast && html`<p>${toast.sentence}
    ${toast.undo && html`<button onClick=${() => { setToast(null); toast.undo(); }}>Undo</button>`}
    <button class="plain" aria-label="Dismiss" onClick=${() => setToast(null)}>✕</button></p>`}</div>`;
  return [shown, show];
}

// A field whose value counts when somebody leaves it; what is being typed outlives a list that arrives meanwhile.
export function Field({ label, value, set, ...more }) {
  const [typed, setTyped] = useState(value);
  useLayoutEffect(() => setTyped(value), [value]);
  return html`<label>${label}<input ...${more} value=${typed} onInput=${(e) => setTyped(e.target.value)} onChange=${(e) => set(e.target.value)} /></label>`;
}
