package wire

import "time"

// A KeyRequest is a key to create.
type KeyRequest struct {
	Service     string    `json:"service,omitempty" doc:"the only service that the key can access"`
	AllServices bool      `json:"all_services,omitempty" doc:"instead of service: the key can access all services; with the scope admin it is an operator key"`
	Name        string    `json:"name,omitempty" maxLength:"128" doc:"name of the key, shown in logs"`
	Scopes      []string  `json:"scopes,omitempty" enum:"admin,publish,subscribe,read,secrets,approve,sessions,work" doc:"scopes of the key; default: admin, which includes the others"`
	Owner       string    `json:"owner,omitempty" maxLength:"254" doc:"the person who owns the key, such as a mail address; keys with the same owner are the same person when a send is approved"`
	ExpiresAt   time.Time `json:"expires_at,omitzero" doc:"time from which the key is no longer valid; default: it does not expire"`
	Notify      string    `json:"notify,omitempty" enum:"live,team,test" doc:"the key is for clients of GOV.UK Notify instead of this API: live sends to anyone, team to the team and the guest list, test to nobody"`
	Secret      string    `json:"secret,omitempty" maxLength:"255" doc:"with notify: an existing key of GOV.UK Notify, so that its clients need no new one; default: a new secret"`
}

// A Key is a key without its secret.
type Key struct {
	ID            string    `json:"id"`
	Name          string    `json:"name"`
	Service       string    `json:"service,omitempty" doc:"the only service that the key can access; absent: all services"`
	Scopes        []string  `json:"scopes" enum:"admin,publish,subscribe,read,secrets,approve,sessions,work"`
	Notify        string    `json:"notify,omitempty" enum:"live,team,test" doc:"type of a key for clients of GOV.UK Notify; absent: a key for this API"`
	Owner         string    `json:"owner,omitempty" doc:"the person who owns the key"`
	CreatedAt     time.Time `json:"created_at,omitzero"`
	ExpiresAt     time.Time `json:"expires_at,omitzero" doc:"absent: the key does not expire"`
	Disabled      bool      `json:"disabled"`
	LastUsed      time.Time `json:"last_used,omitzero" doc:"time of the last use, in whole minutes; absent: not used since the server started"`
	OldValidUntil time.Time `json:"old_valid_until,omitzero" doc:"end of validity of the secret before the last rotation"`
	OldLastUsed   time.Time `json:"old_last_used,omitzero" doc:"time of the last use of that secret, in whole minutes; absent: not used since the rotation or since the server started"`
}

// A NewKey is a key with its secret, which is shown only once: the server stores only a
// hash of it.
type NewKey struct {
	Key
	Secret string `json:"key" doc:"the secret, for the header Authorization: Bearer; shown only once"`
}

// Resealed is the result of replacing the sealing key.
type Resealed struct {
	Keys int `json:"keys" doc:"number of secrets that were sealed again"`
}

// A KeyPatch changes a key (JSON Merge Patch, RFC 7396): absent members do not change,
// null resets a member.
type KeyPatch struct {
	Name      string    `json:"name,omitempty" maxLength:"128"`
	Scopes    []string  `json:"scopes,omitempty" enum:"admin,publish,subscribe,read,secrets,approve,sessions,work" doc:"complete list of scopes; it replaces the previous list"`
	Owner     string    `json:"owner,omitempty" maxLength:"254" doc:"the person who owns the key; a key cannot change its own owner"`
	ExpiresAt time.Time `json:"expires_at,omitzero" doc:"null: the key does not expire"`
	Disabled  bool      `json:"disabled,omitempty" doc:"true: the key is invalid until this is set to false"`
}

// A Rotation has the options for a new secret.
type Rotation struct {
	Grace int `json:"grace,omitempty" minimum:"0" maximum:"604800" doc:"seconds for which the old secret remains valid; 0: it becomes invalid immediately"`
}

// KeyPage is a page of keys, in the order of their creation.
type KeyPage struct {
	Keys []Key  `json:"keys"`
	Next string `json:"next,omitempty" doc:"the cursor of the next page; absent at the end"`
}
