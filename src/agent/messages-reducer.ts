import { AIMessage, BaseMessage, RemoveMessage, ToolMessage } from "@langchain/core/messages";
import { messagesDeltaReducer } from "@langchain/langgraph";

type Writes = Parameters<typeof messagesDeltaReducer>[1];

/** More are replayed rather than added. */
const FEW = 32;

/**
 * LangGraph's fold of messages, which makes an index of the whole thread each time. A few new messages, which
 * is nearly all that ever comes, are put at its end without. Results stand in the order of their calls,
 * whichever ended first: LangGraph's order differs from run to run.
 */
export function foldMessages(state: BaseMessage[], writes: Writes): BaseMessage[] {
  const added: unknown[] = writes.flat();
  if (added.length > FEW || (state.length > 0 && !isMessage(state[0])) || !areNew(added, state)) {
    return inCallOrder([...messagesDeltaReducer(state, writes)], 0);
  }
  return inCallOrder([...state, ...added], state.length);
}

/** Sorts the results behind each reply that has some from `start` on. Changes `messages`. */
function inCallOrder(messages: BaseMessage[], start: number): BaseMessage[] {
  for (let end = start; end < messages.length; end += 1) {
    if (!ToolMessage.isInstance(messages[end])) continue;
    let first = end;
    while (ToolMessage.isInstance(messages[first - 1])) first -= 1;
    while (ToolMessage.isInstance(messages[end + 1])) end += 1;
    const reply = messages[first - 1];
    if (end === first || !AIMessage.isInstance(reply)) continue;
    const places = new Map(reply.tool_calls?.map(({ id }, index) => [id, index]));
    const placeOf = (result: BaseMessage): number =>
      (ToolMessage.isInstance(result) ? places.get(result.tool_call_id) : undefined) ?? places.size;
    const results = messages.slice(first, end + 1).sort((a, b) => placeOf(a) - placeOf(b));
    messages.splice(first, results.length, ...results);
  }
  return messages;
}

const isMessage = (value: unknown): value is BaseMessage => BaseMessage.isInstance(value);

function areNew(added: unknown[], state: readonly BaseMessage[]): added is BaseMessage[] {
  const ids = new Set<string>();
  return added.every((message) => {
    if (!isMessage(message) || RemoveMessage.isInstance(message)) return false;
    const { id } = message;
    if (id === undefined) return true;
    const isNew = !ids.has(id) && !state.some((known) => known.id === id);
    ids.add(id);
    return isNew;
  });
}
