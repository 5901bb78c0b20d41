/** Repairs the history that a model sees, and leaves out media that its provider refuses. */
import type { Middleware } from "../contracts/middleware.ts";
import { CONTEXT_CHANNELS, type TextsByName } from "../contracts/state.ts";
import { cleanMessages, modelClass, openAiHistory, repairHistory } from "../messages/mend.ts";
import { mediaRefusal } from "../models/media-limits.ts";
import { mediaToLeaveOut, messagesFor, withoutRefused } from "../models/media.ts";

const { refusedMedia: REFUSED_MEDIA } = CONTEXT_CHANNELS;

/**
 * Repairs interrupted, cancelled and parallel tool calls in the model's view, and asks again without media that the
 * provider refuses. The state records them with the reply.
 */
export const patchToolCallsMiddleware = (): Middleware => ({
  name: "PatchToolCallsMiddleware",
  channels: { [REFUSED_MEDIA]: { kind: "texts" } },
  wrapModelCall: async (request, next) => {
    const { model, runtime, state } = request;
    const history = repairHistory(request.messages);
    const known = (state[REFUSED_MEDIA] as TextsByName | undefined) ?? {}; // our channel
    let left: TextsByName = {};
    for (let attempt = 1; ; attempt += 1) {
      const sent = cleanMessages(withoutRefused(history, { ...known, ...left }));
      const shown = messagesFor(model, sent);
      try {
        const reply = await next({
          ...request,
          messages: modelClass(model).history === "chat" ? openAiHistory(shown) : shown,
        });
        if (attempt > 1) request.updateState({ [REFUSED_MEDIA]: left });
        return reply;
      } catch (error) {
        const refusal = runtime.signal?.aborted ? undefined : mediaRefusal(error);
        const more = refusal ? mediaToLeaveOut(sent, refusal, attempt) : {};
        if (Object.keys(more).length === 0) throw error;
        left = { ...left, ...more };
        const count = Object.keys(more).length;
        const message = `The model's provider refused a request with media. The agent asks again without them (messages: ${count}).`;
        runtime.step.tell({ kind: "warning", message });
      }
    }
  },
});
