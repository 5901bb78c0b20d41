/** Imports that break a rule of the rooms and have to be removed. Nothing is added here. */
export const EXCEPTIONS = [
  "server/delivery and server/protocol import each other",
  "server/http and server/page import each other",
  "server/page and server/protocol import each other",
  "server/page and server/views import each other",
  "server/protocol and server/resources import each other",
  "server/protocol and server/tasks import each other",
  "server/protocol and server/tools import each other",
  "server/resources and server/views import each other",
];
