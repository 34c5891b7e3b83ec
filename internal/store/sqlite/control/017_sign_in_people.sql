-- People who sign in with OpenID Connect instead of a key.
ALTER TABLE sign_ins ADD COLUMN person TEXT NOT NULL DEFAULT ''; -- JSON: issuer, subject, name, verified mail address and claims; '': key_id signed in
