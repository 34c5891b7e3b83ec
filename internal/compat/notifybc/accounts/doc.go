// Package accounts has the administrators of the NotifyBC API: people with a password, who log in for an access token.
//
// # State and failure
//
// Three kinds of records are in the control database: administrators, credentials (the hash of a password, by the id of the administrator)
// and tokens. A token is stored under the SHA-256 of its text, so that neither the database nor a backup opens anything; the API returns
// the text once, when the token is created. In NotifyBC the text of a token is its id: lists show the hash instead, and a where accepts
// both. New passwords are hashed with Argon2id; bcrypt hashes of an imported installation remain valid.
//
// Wrong logins are limited by address and by account. At most four passwords are hashed at a time, because each takes 19 MB.
package accounts
