/* Shared by all pages: texts in three languages, forms that wait and show what went wrong, dialogs.

   Words of the pool or of a person become text of an element, never markup. */

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
  const created = Object.assign(document.createElement(name), properties);
  created.append(...children.filter((child) => child !== null));
  return created;
}

/** An element whose text follows the language. */
export function texted(name, key, properties = {}, values = {}) {
  const created = element(name, properties);
  say(created, key, values);
  return created;
}

export function say(where, key, values = {}) {
  where.dataset.text = key;
  where.dataset.values = JSON.stringify(values);
  where.textContent = text(key, values);
}

/** The name of a currency behind a number. */
export const unit = (currency) => (currency === "credit" ? "credits" : currency);

export function moment(at, properties = {}) {
  const created = element("time", { dateTime: at, ...properties });
  created.textContent = written(at);
  return created;
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

/** Take the secret after the # of the address, and remove it from the address bar and the history at once. */
export function takeFragment() {
  const token = location.hash.slice(1);
  if (location.hash) history.replaceState(null, "", location.pathname);
  return token;
}

/** Do `work` with a form's values when it is sent. Meanwhile its buttons are disabled; problems are shown beside it. */
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

/** A problem with typed values that the page itself finds. */
export class InputProblem extends Error {
  constructor(key) { super(key); }
}

/** Do `work` for a form or section, one at a time. */
export async function attempt(section, work) {
  if (section.ariaBusy === "true") return;
  const resting = [...section.querySelectorAll("button:not(:disabled)")];
  const focused = document.activeElement;
  section.ariaBusy = "true";
  resting.forEach((button) => { button.disabled = true; });
  tell(section, () => "");
  try {
    await work();
  } catch (problem) {
    tellProblem(section, problem);
  } finally {
    section.ariaBusy = "false";
    resting.forEach((button) => { button.disabled = false; });
    if (document.activeElement === document.body && focused?.isConnected) focused.focus();
  }
}

/** Show a message beside a form, in the chosen language: on the form's own line, or on the page's. */
export function tell(section, words, how = "") {
  const own = [...section.querySelectorAll(".said")].find((line) => line.closest("form, section, main") === section);
  const line = own ?? document.querySelector("main .said");
  Object.assign(line, { textContent: words(), className: `said ${how}`, words });
}

/** Show what went wrong. The pool answers in English; the most frequent refusals are translated. */
export function tellProblem(section, problem) {
  if (problem instanceof InputProblem) return tell(section, () => text(problem.message), "bad");
  if (!(problem instanceof Problem)) throw problem;
  const wait = () => (problem.status === 429 && problem.waitS ? ` ${text("wait_seconds", { n: problem.waitS })}` : "");
  return tell(section, () => (REFUSALS[language]?.[problem.code] ?? problem.message) + wait(), "bad");
}

/** The password of a form, if it was typed twice alike. */
export function samePassword({ password, again }) {
  if (password !== again) throw new InputProblem("passwords_differ");
  return password;
}

/** Ask in a dialog and do `work` with the typed values, until it succeeds or is given up. Answers whether it did. */
export function dialog({ title, why, values = {}, fields = [], action, danger = false }, work) {
  const heading = texted("h2", title, { id: `dialog-${++dialogs}` });
  const give = texted("button", action, { type: "submit", className: danger ? "danger" : "" });
  const leave = texted("button", "cancel", { type: "button", className: "quiet" });
  const form = element("form", {}, heading, why ? texted("p", why, { className: "soft" }, values) : null, ...fields,
    element("p", { className: "said", ariaLive: "assertive" }), element("p", { className: "actions" }, leave, give));
  const modal = element("dialog", {}, form);
  modal.setAttribute("aria-labelledby", heading.id);
  document.body.append(modal);
  modal.showModal();
  return new Promise((resolve) => {
    let succeeded = false;
    leave.addEventListener("click", () => modal.close());
    modal.addEventListener("close", () => { modal.remove(); resolve(succeeded); });
    whenSent(form, async (typed) => { await work(typed, form); succeeded = true; modal.close(); });
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

/** Clear forms when a page is left, so that it keeps no password, and load it anew when "back" returns to it. */
function keepNothing() {
  addEventListener("pagehide", () => document.querySelectorAll("form").forEach((form) => form.reset()));
  addEventListener("pageshow", (event) => { if (event.persisted) location.reload(); });
}

function fill() {
  document.documentElement.lang = TAGS[language];
  document.title = `${text(titleKey)} · Tidemill`;
  document.querySelectorAll("[data-text]").forEach((item) => {
    item.textContent = text(item.dataset.text, JSON.parse(item.dataset.values ?? "{}"));
  });
  document.querySelectorAll("[data-label]").forEach((item) => { item.ariaLabel = text(item.dataset.label); });
  document.querySelectorAll("[data-alternative]").forEach((item) => { item.alt = text(item.dataset.alternative); });
  document.querySelectorAll(".said").forEach((line) => { line.textContent = line.words?.() ?? ""; });
  document.querySelectorAll("time").forEach((item) => { item.textContent = written(item.dateTime); });
}

function written(at) {
  const region = navigator.languages.find((tag) => tag.slice(0, 2) === language) ?? TAGS[language];
  return new Intl.DateTimeFormat(region, { dateStyle: "medium", timeStyle: "short" }).format(new Date(at));
}

function chosenLanguage() {
  const tags = [localStorage.getItem(LANGUAGE), ...navigator.languages].map((tag) => tag?.slice(0, 2).toLowerCase());
  return tags.find((tag) => Object.hasOwn(TEXTS, tag ?? "")) ?? "en";
}
