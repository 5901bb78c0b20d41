/** Approves a call after its end was on the screen, or on a second press. */
const seenCalls = new Set();
const warned = new Set();
/* The buttons stay at the end of the screen, and cover the content below. */
const BEFORE_BUTTONS = { rootMargin: "0px 0px -72px" };
const callSeen = new IntersectionObserver((entries) => {
  for (const { isIntersecting, target } of entries) {
    if (isIntersecting) seenCalls.add(target.closest("[data-approval]").dataset.approval);
  }
}, BEFORE_BUTTONS);
export function watchEnds() {
  callSeen.disconnect();
  for (const end of document.querySelectorAll("[data-end]")) callSeen.observe(end);
}
/** True if the end of the call is above the buttons, or was. */
function isSeen(request) {
  const end = request.querySelector("[data-end]");
  const bottom = request.querySelector(".ask-foot").getBoundingClientRect().top;
  return (
    seenCalls.has(request.dataset.approval) ||
    end === null ||
    end.getBoundingClientRect().bottom <= bottom + 1
  );
}
addEventListener(
  "click",
  (event) => {
    const button = event.target.closest?.("button[name=decision][value^=approve]");
    const request = button?.closest("[data-approval]");
    if (!request || isSeen(request) || warned.has(request.dataset.approval)) return;
    event.preventDefault();
    warned.add(request.dataset.approval);
    const warning = document.createElement("p");
    warning.className = "notice amber";
    warning.setAttribute("role", "alert");
    warning.textContent = "The end of this call was not on the screen yet. Press again to approve it unseen.";
    button.form.prepend(warning);
  },
  true,
);
