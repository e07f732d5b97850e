// A link to sign in carries its code behind the #, which browsers do not send: it is posted, and taken out of the address.
"use strict";
const code = new URLSearchParams(location.hash.slice(1)).get("code");
if (code) {
  history.replaceState(null, "", location.pathname + location.search);
  document.getElementById("code").value = code;
  document.getElementById("by-code").submit();
}
