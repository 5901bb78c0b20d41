/**
 * The settings of this browser. A cookie keeps them, because each server has a port, and so an origin, of its own.
 * Cookies do not depend on the port.
 */
const NAME = "deepagent-page";
const YEAR_S = 31_536_000;

const all = () =>
  new URLSearchParams(
    document.cookie
      .split("; ")
      .find((cookie) => cookie.startsWith(`${NAME}=`))
      ?.slice(NAME.length + 1),
  );

/** The value of a setting; `null`: the person has not changed it. */
export const preference = (name) => all().get(name);

export function prefer(name, value) {
  const changed = all();
  changed.set(name, value);
  document.cookie = `${NAME}=${changed}; Path=/; Max-Age=${YEAR_S}; SameSite=Strict`;
}

/** Without a theme of its own, the page follows the system. */
export function showTheme() {
  document.documentElement.dataset.theme = preference("theme") ?? "system";
}
