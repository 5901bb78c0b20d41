/** Menus: they open where the window has room for them. Escape and a click elsewhere close the open one. Escape returns the focus to its button. */
const openMenu = () => document.querySelector("details.drop[open]");

function closeMenu() {
  const menu = openMenu();
  if (menu === null) return;
  const hadFocus = menu.contains(document.activeElement);
  menu.open = false;
  if (hadFocus) menu.querySelector("summary").focus();
}

addEventListener(
  "keydown",
  (event) => {
    if (event.key !== "Escape" || openMenu() === null || document.querySelector("dialog[open]")) return;
    event.preventDefault();
    closeMenu();
  },
  true,
);
addEventListener("click", ({ target }) => {
  const name = target.closest?.("[data-dialog]")?.dataset.dialog;
  if (name !== undefined) document.getElementById(name).showModal();
});
addEventListener("click", ({ target, detail }) => {
  const menu = openMenu();
  if (menu === null || !target.isConnected) return;
  // Arrow keys click at the next choice, and the menu stays open.
  const isKey = detail === 0 && target.matches("input");
  if (!menu.contains(target)) menu.open = false;
  else if (target.closest("[data-closes]") && !isKey) closeMenu();
});

const GAP = 12;

/** Opens a menu upward if there is more room, and lets it scroll within the window. Phones have sheets instead. */
function place(drop) {
  const menu = drop.querySelector(".menu");
  const { top, bottom, left } = drop.getBoundingClientRect();
  const bar = document.querySelector(".top")?.getBoundingClientRect().bottom ?? 0;
  const above = top - (drop.closest(".top") ? top : bar) - GAP;
  const below = innerHeight - bottom - GAP;
  const isUp = menu.scrollHeight > below && above > below;
  drop.toggleAttribute("data-up", isUp);
  menu.style.setProperty("--room", `${Math.max(above, below)}px`);
  menu.style.setProperty("--shift", `${Math.min(0, innerWidth - GAP - left - menu.offsetWidth)}px`);
}
addEventListener(
  "toggle",
  ({ target }) => {
    if (target.matches?.("details.drop[open]")) place(target);
  },
  true,
);
addEventListener("resize", () => openMenu() !== null && place(openMenu()));
