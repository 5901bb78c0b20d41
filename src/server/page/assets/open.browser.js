/** Follows the link for a person who has scripts. */
"use strict";
document.getElementById("open").submit();
