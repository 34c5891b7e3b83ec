// Package oidc signs people in with OpenID Connect (OpenID Connect Core 1.0, authorization code flow with PKCE, RFC 7636).
//
// State. A Client has the issuers of the settings, what it has discovered about them, and the flows that browsers have begun and not completed, at most
// 10 minutes each. All of it is in memory only: after a restart, a person who was at the page of the issuer begins again.
//
// Failure. An issuer is asked when the first person signs in with it, within time and size limits. If it does not respond, that sign-in is refused with the
// reason Unavailable, and nothing else stops. The refusals that a browser learns are a few words; their causes are in the log.
//
// The HTTP API calls it; it does not know sign-ins, services or roles.
package oidc
