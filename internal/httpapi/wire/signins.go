package wire

import "time"

// A SignIn is a sign-in of a person to the console, with a key or with OpenID Connect.
type SignIn struct {
	ID        string       `json:"id" doc:"id of the sign-in"`
	KeyID     string       `json:"key_id,omitempty" doc:"key with which the person signed in; absent for OpenID Connect"`
	KeyName   string       `json:"key_name,omitempty" doc:"name of the key"`
	Person    string       `json:"person,omitempty" doc:"name of the person, as the issuer of OpenID Connect states it"`
	Mail      string       `json:"mail,omitempty" doc:"mail address of the person that the issuer has verified"`
	Issuer    string       `json:"issuer,omitempty" doc:"URL of the issuer; absent for a key"`
	Subject   string       `json:"subject,omitempty" doc:"identifier of the person at the issuer"`
	Service   string       `json:"service,omitempty" doc:"the only service that the person may access; absent for several or all services"`
	Scopes    []string     `json:"scopes" doc:"what the person may do now in that service, or without it, in all services"`
	Roles     []SignInRole `json:"roles,omitempty" doc:"current roles of a person of OpenID Connect: those in all services first, then by service"`
	BeganAt   time.Time    `json:"began_at" doc:"when the person signed in"`
	UsedAt    time.Time    `json:"used_at" doc:"time of the last request"`
	ExpiresAt time.Time    `json:"expires_at" doc:"when it ends if there is no further request: 8 hours after the last request, at most 7 days after the beginning"`
	UserAgent string       `json:"user_agent,omitempty" doc:"browser"`
	Address   string       `json:"address,omitempty" doc:"IP address at the beginning"`
}

// A SignInRole is what a person may do in one service, or in all.
type SignInRole struct {
	Service string   `json:"service,omitempty" doc:"service; absent for all services"`
	Roles   []string `json:"roles" enum:"viewer,sender,approver,admin" doc:"names of the roles"`
	Scopes  []string `json:"scopes" doc:"scopes of these roles together"`
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

// Issuers are the issuers of OpenID Connect with which people can sign in to the console.
type Issuers struct {
	Issuers []Issuer `json:"issuers"`
}

// An Issuer is an issuer on the page of the sign-in.
type Issuer struct {
	ID   string `json:"id"`
	Name string `json:"name"`
}
