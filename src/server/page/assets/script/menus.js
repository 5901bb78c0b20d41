/** Menus: Escape and a click elsewhere close the open one. Escape returns the focus to its button. */
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
