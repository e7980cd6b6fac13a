/* Asking for an account. What is answered is the same whether there is one already: the letter tells. */

import { Told, begin, byId, currentLanguage, samePassword, whenSent } from "/pages/page.js";
import { send } from "/pages/pool.js";

begin("register_title");
whenSent(byId("register"), async (typed) => {
  const { address, roles } = typed;
  const password = samePassword(typed);
  if (!roles.length) throw new Told("roles_missing");
  await send("POST", "/auth/register", { address, password, roles, language: currentLanguage() });
  sessionStorage.setItem("tidemill_address", address);
  location.assign("/confirm");
});
