package wire

import "time"

// A SignIn is a sign-in of a person to the console.
type SignIn struct {
	ID        string    `json:"id" doc:"id of the sign-in"`
	KeyID     string    `json:"key_id" doc:"key with which the person signed in"`
	KeyName   string    `json:"key_name,omitempty" doc:"name of the key"`
	Service   string    `json:"service,omitempty" doc:"service of the key; absent for all services"`
	Scopes    []string  `json:"scopes" doc:"what the person may do: the scopes that the key has now"`
	BeganAt   time.Time `json:"began_at" doc:"when the person signed in"`
	UsedAt    time.Time `json:"used_at" doc:"time of the last request"`
	ExpiresAt time.Time `json:"expires_at" doc:"when it ends if there is no further request: 8 hours after the last request, at most 7 days after the beginning"`
	UserAgent string    `json:"user_agent,omitempty" doc:"browser"`
	Address   string    `json:"address,omitempty" doc:"IP address at the beginning"`
}

// A SignInPage is a page of sign-ins, the newest first.
type SignInPage struct {
	SignIns []SignIn `json:"sign_ins" doc:"sign-ins that have not ended"`
	Next    string   `json:"next,omitempty" doc:"cursor of the next page; absent on the last page"`
}

// A SignInRequest exchanges a key for a cookie.
type SignInRequest struct {
	Key string `json:"key" doc:"secret of an API key"`
}
