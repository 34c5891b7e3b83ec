package wire

import "time"

// A KeyRequest asks for a key.
type KeyRequest struct {
	Service     string    `json:"service,omitempty" doc:"the only service that the key may touch"`
	AllServices bool      `json:"all_services,omitempty" doc:"in place of service: the key may touch all services; with the scope admin it is an operator's"`
	Name        string    `json:"name,omitempty" maxLength:"128" doc:"name of the key; shown in logs"`
	Scopes      []string  `json:"scopes,omitempty" enum:"admin,publish,subscribe,read" doc:"scopes of the key; absent: admin, which includes the others"`
	ExpiresAt   time.Time `json:"expires_at,omitzero" doc:"time from which the key is invalid; default: never"`
}

// A Key is what is known of a key.
type Key struct {
	ID            string    `json:"id"`
	Name          string    `json:"name"`
	Service       string    `json:"service,omitempty" doc:"the only service that the key may touch; absent: all of them"`
	Scopes        []string  `json:"scopes" enum:"admin,publish,subscribe,read"`
	CreatedAt     time.Time `json:"created_at,omitzero"`
	ExpiresAt     time.Time `json:"expires_at,omitzero" doc:"absent: never"`
	Disabled      bool      `json:"disabled"`
	LastUsed      time.Time `json:"last_used,omitzero" doc:"in whole minutes; absent: not since the server has started"`
	OldValidUntil time.Time `json:"old_valid_until,omitzero" doc:"until when the secret before the last rotation works"`
	OldLastUsed   time.Time `json:"old_last_used,omitzero" doc:"when that secret was used last, in whole minutes; absent: not since the rotation, or since the server has started"`
}

// A NewKey is a key with its secret, which is shown this once: only a hash of it
// is kept.
type NewKey struct {
	Key
	Secret string `json:"key" doc:"the secret, for the header Authorization: Bearer; shown this once"`
}

// A KeyPatch changes a key (JSON Merge Patch, RFC 7396): what is absent stays,
// null sets back.
type KeyPatch struct {
	Name      string    `json:"name,omitempty" maxLength:"128"`
	Scopes    []string  `json:"scopes,omitempty" enum:"admin,publish,subscribe,read" doc:"all of them: they replace those before"`
	ExpiresAt time.Time `json:"expires_at,omitzero" doc:"null: never"`
	Disabled  bool      `json:"disabled,omitempty" doc:"true: the key is invalid until this is false again"`
}

// A Rotation asks for a new secret.
type Rotation struct {
	Grace int `json:"grace,omitempty" minimum:"0" maximum:"604800" doc:"seconds for which the old secret stays valid; 0: it becomes invalid now"`
}

// KeyPage is a part of the keys, in the order in which they were made.
type KeyPage struct {
	Keys []Key  `json:"keys"`
	Next string `json:"next,omitempty" doc:"the cursor of the next page; absent at the end"`
}
