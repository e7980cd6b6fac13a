/* What all pages share: their texts in three languages, forms that wait and say what went wrong, dialogs.

   Whatever the pool or a person says becomes text of an element, never markup. */

import { Problem } from "/pages/pool.js";
import { REFUSALS, TEXTS } from "/pages/texts.js";

const LANGUAGE = "tidemill_language";
const TAGS = { en: "en", ru: "ru", zh: "zh-Hans" };

let language = chosenLanguage();
let titleKey = null;
let dialogs = 0;

export const currentLanguage = () => language;
export const byId = (id) => document.getElementById(id);

export function text(key, values = {}) {
  return TEXTS[language][key].replace(/\{(\w+)\}/g, (_, name) => values[name]);
}

/** An element with properties and children; a child may be a string, which stays text. */
export function element(name, properties = {}, ...children) {
  const made = Object.assign(document.createElement(name), properties);
  made.append(...children.filter((child) => child !== null));
  return made;
}

/** An element whose text follows the language. */
export function texted(name, key, properties = {}, values = {}) {
  const made = element(name, properties);
  say(made, key, values);
  return made;
}

export function say(where, key, values = {}) {
  where.dataset.text = key;
  where.dataset.values = JSON.stringify(values);
  where.textContent = text(key, values);
}

export function moment(at, properties = {}) {
  const made = element("time", { dateTime: at, ...properties });
  made.textContent = written(at);
  return made;
}

/** Begin a page: its texts, its title, the choice of language. */
export function begin(title) {
  titleKey = title;
  byId("language").value = language;
  byId("language").addEventListener("change", (event) => {
    language = event.target.value;
    localStorage.setItem(LANGUAGE, language);
    fill();
  });
  fill();
  keepNothing();
  document.documentElement.classList.add("written");
  document.querySelector("[autofocus]:not([hidden])")?.focus();
}

/** What follows the # in the address, which is a secret: it leaves the address bar and the history at once. */
export function takeFragment() {
  const token = location.hash.slice(1);
  if (location.hash) history.replaceState(null, "", location.pathname);
  return token;
}

/** Do `work` with a form's values when it is sent. Meanwhile its buttons rest; what goes wrong is said beside it. */
export function whenSent(form, work) {
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    attempt(form, () => work(valuesOf(form), form));
  });
}

/** The same for a button by itself. */
export function whenPressed(button, work) {
  button.addEventListener("click", () => attempt(button.closest("section, form, main"), () => work(button)));
}

/** What a page itself has to say against what was typed. */
export class Told extends Error {
  constructor(key) { super(key); }
}

/** Do `work` for a form or section, once at a time. */
export async function attempt(place, work) {
  if (place.ariaBusy === "true") return;
  const resting = [...place.querySelectorAll("button:not(:disabled)")];
  const focused = document.activeElement;
  place.ariaBusy = "true";
  resting.forEach((button) => { button.disabled = true; });
  tell(place, () => "");
  try {
    await work();
  } catch (problem) {
    tellProblem(place, problem);
  } finally {
    place.ariaBusy = "false";
    resting.forEach((button) => { button.disabled = false; });
    if (document.activeElement === document.body && focused?.isConnected) focused.focus();
  }
}

/** Say something beside a form, in whatever language is chosen: on its own line, or on the page's. */
export function tell(place, words, how = "") {
  const own = [...place.querySelectorAll(".said")].find((said) => said.closest("form, section, main") === place);
  const said = own ?? document.querySelector("main .said");
  Object.assign(said, { textContent: words(), className: `said ${how}`, words });
}

/** Say what went wrong. The pool speaks English; what people meet most is translated. */
export function tellProblem(place, problem) {
  if (problem instanceof Told) return tell(place, () => text(problem.message), "bad");
  if (!(problem instanceof Problem)) throw problem;
  const wait = () => (problem.status === 429 && problem.waitS ? ` ${text("wait_seconds", { n: problem.waitS })}` : "");
  return tell(place, () => (REFUSALS[language]?.[problem.code] ?? problem.message) + wait(), "bad");
}

/** Both passwords of a form, if they are the same one. */
export function samePassword({ password, again }) {
  if (password !== again) throw new Told("passwords_differ");
  return password;
}

/** Ask in a dialog and do `work` with what was typed, until it succeeds or is given up; whether it succeeded. */
export function dialog({ title, why, values = {}, fields = [], action, danger = false }, work) {
  const heading = texted("h2", title, { id: `dialog-${++dialogs}` });
  const give = texted("button", action, { type: "submit", className: danger ? "danger" : "" });
  const leave = texted("button", "cancel", { type: "button", className: "quiet" });
  const form = element("form", {}, heading, why ? texted("p", why, { className: "soft" }, values) : null, ...fields,
    element("p", { className: "said", ariaLive: "assertive" }), element("p", { className: "actions" }, leave, give));
  const shown = element("dialog", {}, form);
  shown.setAttribute("aria-labelledby", heading.id);
  document.body.append(shown);
  shown.showModal();
  return new Promise((resolve) => {
    let succeeded = false;
    leave.addEventListener("click", () => shown.close());
    shown.addEventListener("close", () => { shown.remove(); resolve(succeeded); });
    whenSent(form, async (typed) => { await work(typed, form); succeeded = true; shown.close(); });
  });
}

export function labelled(key, properties) {
  return element("label", {}, texted("span", key), element("input", properties));
}

export async function copy(words, button) {
  await navigator.clipboard.writeText(words);
  say(button, "copied");
}

function valuesOf(form) {
  const sent = new FormData(form);
  const ticked = [...form.querySelectorAll("input[type=checkbox][name]")].map((box) => box.name);
  const lists = ticked.filter((name) => form.querySelectorAll(`input[name=${name}]`).length > 1);
  const values = Object.fromEntries(sent);
  for (const name of ticked) values[name] = sent.has(name);
  for (const name of lists) values[name] = sent.getAll(name);
  return values;
}

/** A page that is left keeps no password, and one that is come back to by "back" is asked for anew. */
function keepNothing() {
  addEventListener("pagehide", () => document.querySelectorAll("form").forEach((form) => form.reset()));
  addEventListener("pageshow", (event) => { if (event.persisted) location.reload(); });
}

function fill() {
  document.documentElement.lang = TAGS[language];
  document.title = `${text(titleKey)} · Tidemill`;
  document.querySelectorAll("[data-text]").forEach((found) => {
    found.textContent = text(found.dataset.text, JSON.parse(found.dataset.values ?? "{}"));
  });
  document.querySelectorAll("[data-label]").forEach((found) => { found.ariaLabel = text(found.dataset.label); });
  document.querySelectorAll("[data-alternative]").forEach((found) => { found.alt = text(found.dataset.alternative); });
  document.querySelectorAll(".said").forEach((said) => { said.textContent = said.words?.() ?? ""; });
  document.querySelectorAll("time").forEach((found) => { found.textContent = written(found.dateTime); });
}

function written(at) {
  const region = navigator.languages.find((one) => one.slice(0, 2) === language) ?? TAGS[language];
  return new Intl.DateTimeFormat(region, { dateStyle: "medium", timeStyle: "short" }).format(new Date(at));
}

function chosenLanguage() {
  const wanted = [localStorage.getItem(LANGUAGE), ...navigator.languages].map((one) => one?.slice(0, 2).toLowerCase());
  return wanted.find((one) => Object.hasOwn(TEXTS, one ?? "")) ?? "en";
}
