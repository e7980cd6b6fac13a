/* Proving an address. It takes a press, also with a link: mail scanners open links by themselves. */

import { begin, byId, say, takeFragment, whenSent } from "/pages/page.js";
import { send } from "/pages/pool.js";

const form = byId("confirm");
const link = takeFragment();

if (link) {
  byId("typed").remove();
  say(byId("why"), "confirm_link_why");
}
begin("confirm_title");
if (!link) form.elements.address.value = sessionStorage.getItem("tidemill_address") ?? "";
whenSent(form, async ({ address, code, password }) => {
  try {
    await send("POST", "/auth/confirm", { ...(link ? { link } : { address, code }), password: password || null });
  } catch (problem) {
    if (problem.code !== "registration_password" || password) throw problem;
    askForPassword();
    return;
  }
  form.hidden = true;
  byId("done").hidden = false;
  byId("done").querySelector("h1").focus();
});

/* Only a registration asks for the password: it proves that the same person registered. */
function askForPassword() {
  byId("chosen").hidden = false;
  form.elements.password.required = true;
  form.elements.password.focus();
}
