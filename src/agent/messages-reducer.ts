import { BaseMessage, RemoveMessage } from "@langchain/core/messages";
import { messagesDeltaReducer } from "@langchain/langgraph";

type Writes = Parameters<typeof messagesDeltaReducer>[1];

/** More are replayed rather than added. */
const FEW = 32;

/**
 * LangGraph's fold of messages, which makes an index of the whole thread each time. A few new messages, which
 * is nearly all that ever comes, are put at its end without.
 */
export function foldMessages(state: BaseMessage[], writes: Writes): BaseMessage[] {
  const added: unknown[] = writes.flat();
  return added.length <= FEW && (state.length === 0 || isMessage(state[0])) && areNew(added, state)
    ? [...state, ...added]
    : messagesDeltaReducer(state, writes);
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
