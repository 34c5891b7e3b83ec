-- People who sign in with OpenID Connect instead of a key.
-- +goose Up

ALTER TABLE sign_ins ADD COLUMN person text NOT NULL DEFAULT '';
COMMENT ON COLUMN sign_ins.key_id IS 'Key with which the person signed in, or empty.';
COMMENT ON COLUMN sign_ins.person IS 'JSON: issuer, subject, name, verified mail address and claims of a person of OpenID Connect, or empty.';
