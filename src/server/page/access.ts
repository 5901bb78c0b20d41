/** Reads the links and subscriptions of a principal that still work. */
import { renderAccess } from "../views/room/access.ts";
import { type Picture, type ScreenContext, livePicture, waitingFor } from "./screen-context.ts";

export async function accessScreen(context: ScreenContext): Promise<Picture> {
  const { runs, session, sharing } = context;
  const [all, waiting] = await Promise.all([runs.access.list(), waitingFor(context)]);
  // The operator of the server may also revoke links that no longer work.
  const working = session.isLoggedIn && sharing ? await sharing.working(all) : all;
  const about = { title: "Links and subscriptions", place: "access", waiting } as const;
  return livePicture(context, about, () => renderAccess(session, working));
}
