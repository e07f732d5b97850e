// A login link has its code after the #, which browsers do not send: post it, and remove it from the address.
"use strict";
const code = new URLSearchParams(location.hash.slice(1)).get("code");
if (code) {
  history.replaceState(null, "", location.pathname + location.search);
  document.getElementById("code").value = code;
  document.getElementById("by-code").submit();
}
