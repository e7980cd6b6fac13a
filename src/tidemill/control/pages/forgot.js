/* Asking for a letter with which another password can be set. */

import { begin, byId, currentLanguage, whenSent } from "/pages/page.js";
import { send } from "/pages/pool.js";

begin("forgot_title");
whenSent(byId("forgot"), async ({ address }) => {
  await send("POST", "/auth/forgot", { address, language: currentLanguage() });
  sessionStorage.setItem("tidemill_address", address);
  location.assign("/reset");
});
