/* Setting another password, with the link of a letter or with the code in it. */

import { begin, byId, samePassword, say, takeFragment, whenSent } from "/pages/page.js";
import { forget, send } from "/pages/pool.js";

const form = byId("reset");
const link = takeFragment();

if (link) {
  byId("typed").remove();
  say(byId("why"), "reset_link_why");
}
begin("reset_title");
if (!link) form.elements.address.value = sessionStorage.getItem("tidemill_address") ?? "";
whenSent(form, async (typed) => {
  const proof = link ? { link } : { address: typed.address, code: typed.code };
  await send("POST", "/auth/reset", { ...proof, password: samePassword(typed) });
  forget();
  form.hidden = true;
  byId("done").hidden = false;
  byId("done").querySelector("h1").focus();
});
