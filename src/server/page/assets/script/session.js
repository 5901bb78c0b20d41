/**
 * The session of this tab. The server issued a secret, which the tab sends to its own origin in a header, and a
 * proof, which answers have to carry. A server started later knows neither; nor does any other program that gets the
 * port: its answers carry no proof, so they are not shown, and the secret is deleted.
 */
const KEY = "session";
const SECRET_HEADER = "page-session";
const PROOF_HEADER = "page-proof";
/** Sent by a tab without a secret: the browser may have a cookie. */
const NO_SECRET = "cookie";
/** Other tabs have so many milliseconds to hand their session over; after one has, others have a few more. */
const PATIENCE_MS = { first: 1000, others: 100 };

let session = JSON.parse(sessionStorage.getItem(KEY) ?? "null");

/** Keeps a session for as long as the tab is open; `undefined`: it has none. */
export function keep(given) {
  session = given ?? null;
  if (session === null) sessionStorage.removeItem(KEY);
  else sessionStorage.setItem(KEY, JSON.stringify(session));
}

/** True if the tab followed a link to one run, which ends. */
export const isShared = () => session?.until !== undefined;

/** True if sessions come from links here, and not from a log-in. */
export const isLinked = "linked" in document.body.dataset;

/** Asks the server. Fails like `fetch` if it does not answer. */
export const request = (address, { headers, ...more } = {}) =>
  fetch(address, { ...more, headers: { ...headers, [SECRET_HEADER]: session?.secret ?? NO_SECRET } });

/** True if an answer comes from the server of this session. False: that server may be out of reach now. */
export function isOurs({ status, headers }) {
  if (status === 401) return false;
  return session === null || status >= 500 || headers.get(PROOF_HEADER) === session.proof;
}

/*
 * A tab that was opened from another one has no session of its own, and asks the others for theirs. Only documents of
 * this origin can ask, and only sessions of links are handed over: their server has a port that the system chose
 * for it, so all documents of the origin are its own for as long as it runs.
 */
const tabs = new BroadcastChannel(KEY);
const shows = ({ run }, path) => run === undefined || path.split("/")[2] === encodeURIComponent(run);
tabs.addEventListener("message", ({ data }) => {
  if (data.asks !== undefined && isLinked && session !== null && shows(session, data.asks))
    // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a channel is of one origin
    tabs.postMessage({ session });
});

/** Takes over the session of another tab, if possible one that decides, where this one has none. */
export async function askOtherTabs() {
  if (session !== null || !isLinked) return;
  const given = await new Promise((resolve) => {
    let best;
    const finish = () => {
      tabs.removeEventListener("message", listen);
      resolve(best);
    };
    const listen = ({ data }) => {
      if (data.session === undefined || !shows(data.session, location.pathname)) return;
      best = data.session;
      if (best.decides) finish();
      else setTimeout(finish, PATIENCE_MS.others);
    };
    setTimeout(finish, PATIENCE_MS.first);
    tabs.addEventListener("message", listen);
    // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a channel is of one origin
    tabs.postMessage({ asks: location.pathname });
  });
  keep(given);
}
