/* Calls to the pool. Tokens live in cookies that no script can read; only their expiry and their session are kept here.

   The access token lives for minutes. One tab renews it before its end for all tabs, because a refresh token is valid
   once: two tabs that used the same one would end the session. */

const UNTIL = "tidemill_until";
const SESSION = "tidemill_session";
const EARLY_MS = 30_000;
const OVER = new Set(["unauthenticated", "token_unknown", "session_over"]);

let reauthenticate = null;

export class Problem extends Error {
  constructor(status, code, detail, waitS = null) {
    super(detail);
    Object.assign(this, { status, code, waitS });
  }
}

/** Set what to do when the pool asks for the password again; `work` answers whether that was done. */
export function whenStale(work) { reauthenticate = work; }

/** Whether somebody was logged in here, as far as this browser remembers. */
export const maybeInside = () => localStorage.getItem(UNTIL) !== null;

export function forget() {
  localStorage.removeItem(UNTIL);
  localStorage.removeItem(SESSION);
}

/** Set what to do when another tab has logged out, or in as another account: this tab shows an old session. */
export function whenSessionChanges(work) {
  addEventListener("storage", (event) => { if (event.key === SESSION) work(); });
}

/** Ask as the person who is logged in. The session is continued by itself while it can be. */
export async function ask(method, path, body) {
  const until = localStorage.getItem(UNTIL);
  if (until !== null && Date.now() > Number(until) - EARLY_MS) await goOn(until);
  try {
    return await send(method, path, body);
  } catch (problem) {
    if (OVER.has(problem.code) && await goOn()) return send(method, path, body);
    if (problem.code !== "fresh_login_needed" || !reauthenticate) throw problem;
    if (await reauthenticate()) return send(method, path, body);
    throw new Problem(0, "given_up", "");
  }
}

export async function logIn(credentials) {
  keep(await answer("POST", "/auth/login", { ...credentials, cookies: true }));
}

export async function logOut() {
  try { await ask("POST", "/auth/logout"); } catch (problem) { if (!OVER.has(problem.code)) throw problem; }
  forget();
}

/** Continue the session, unless another tab has done so since `seen`. Answers whether there is a session. */
export function goOn(seen = localStorage.getItem(UNTIL)) {
  return navigator.locks.request("tidemill_refresh", async () => {
    if (localStorage.getItem(UNTIL) !== seen) return maybeInside();
    try {
      keep(await answer("POST", "/auth/refresh", {}));
      return true;
    } catch (problem) {
      if (!OVER.has(problem.code)) throw problem;
      forget();
      return false;
    }
  });
}

export async function send(method, path, body) {
  return (await answer(method, path, body)).body;
}

async function answer(method, path, body) {
  const options = { method, headers: { Accept: "application/json" }, cache: "no-store" };
  if (body !== undefined) Object.assign(options, { body: JSON.stringify(body) });
  if (body !== undefined) options.headers["Content-Type"] = "application/json";
  let response, text;
  try {
    response = await fetch(`/api/v1${path}`, options);
    text = await response.text();
  } catch {
    throw new Problem(0, "no_answer", "The pool does not answer.");
  }
  const content = parsed(text);
  if (response.ok) return { body: content, at: Date.parse(response.headers.get("Date")) };
  const waitS = Number(response.headers.get("Retry-After")) || null;
  throw new Problem(response.status, content?.code ?? "no_answer", content?.detail ?? response.statusText, waitS);
}

function parsed(text) {
  try { return JSON.parse(text); } catch { return null; }
}

/** Keep the expiry by this machine's clock, which may be wrong: so only the difference to the pool's time counts. */
function keep({ body, at }) {
  localStorage.setItem(SESSION, body.session_id);
  localStorage.setItem(UNTIL, String(Date.now() + Date.parse(body.access_expires_at) - at));
}
