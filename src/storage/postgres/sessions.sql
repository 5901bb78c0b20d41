-- Version 1: sessions that any server serves, and messages between servers
CREATE TABLE client_sessions (
  id TEXT PRIMARY KEY,
  principal TEXT NOT NULL,
  owner TEXT NOT NULL,
  opening TEXT NOT NULL,
  subscriptions TEXT[] NOT NULL DEFAULT '{}',
  servers TEXT[] NOT NULL,
  used BIGINT NOT NULL
);
CREATE INDEX client_sessions_of_principal ON client_sessions (principal, used);
CREATE TABLE session_mail (
  id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  session TEXT NOT NULL REFERENCES client_sessions ON DELETE CASCADE,
  server TEXT NOT NULL,
  message TEXT NOT NULL,
  time BIGINT NOT NULL
);
CREATE INDEX session_mail_of_server ON session_mail (server);
CREATE INDEX session_mail_of_session ON session_mail (session);
-- Version 2: no messages between servers
DROP TABLE session_mail;
ALTER TABLE client_sessions DROP COLUMN servers;
