// Package roles decides who makes a request of the NotifyBC API, and with which role.
//
// A [Resolver] tries, in this order: the header is_anonymous, the address list of super-administrators, a client certificate, an access
// token, an OpenID Connect token, SiteMinder headers. A request that proves nothing is anonymous; an unknown or expired token is not
// refused, and leaves the request with whatever else it proves.
//
// # Proxies
//
// Every client that reaches the listener can write any header, so an address or a header counts only as far as its sender is named. X-Forwarded-For
// is read from trusted proxies only, from right to left up to the first address that is none of them. A request that a proxy has forwarded
// (it has a forwarding header) and whose proxy is not named has no role by its address: a proxy on the same machine would otherwise make
// everyone a super-administrator. SiteMinder headers count only from a named SiteMinder proxy, or from the same machine without a proxy.
//
// # State and failure
//
// A Resolver never changes after the start and is safe for concurrent use. If access tokens cannot be read, or an issuer does not
// respond, the request goes on without them, and the error is logged.
package roles
