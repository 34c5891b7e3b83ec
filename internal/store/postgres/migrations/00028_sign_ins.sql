-- Sign-ins of people to the console.
-- +goose Up

CREATE TABLE sign_ins (
  id       text   COLLATE "C" PRIMARY KEY,
  hash     bytea  NOT NULL,
  key_id   text   NOT NULL,
  began_at bigint NOT NULL,
  used_at  bigint NOT NULL,
  agent    text   NOT NULL,
  address  text   NOT NULL
);
COMMENT ON TABLE sign_ins IS 'Sign-ins of people to the console.';
COMMENT ON COLUMN sign_ins.hash IS 'SHA-256 of the secret in the cookie.';
COMMENT ON COLUMN sign_ins.key_id IS 'Key with which the person signed in.';
COMMENT ON COLUMN sign_ins.began_at IS 'Unix seconds.';
COMMENT ON COLUMN sign_ins.used_at IS 'Unix seconds, at most some minutes late.';
COMMENT ON COLUMN sign_ins.agent IS 'User-Agent of the browser.';
COMMENT ON COLUMN sign_ins.address IS 'IP address at the beginning.';
