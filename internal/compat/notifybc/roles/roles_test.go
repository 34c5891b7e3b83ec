package roles_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"testing"

	"fanfare.dev/fanfare/internal/compat/notifybc/roles"
	"fanfare.dev/fanfare/internal/jmespath"
)

type tokens map[string]string

func (t tokens) Holder(_ context.Context, token string) (string, error) {
	if token == "broken" {
		return "", errors.New("the database is away")
	}
	return t[token], nil
}

type verifier map[string]map[string]any

func (v verifier) Verify(_ context.Context, token string) (map[string]any, error) {
	if claims, ok := v[token]; ok {
		return claims, nil
	}
	return nil, errors.New("the signature is wrong")
}

func prefixes(texts ...string) (list []netip.Prefix) {
	for _, text := range texts {
		list = append(list, netip.MustParsePrefix(text))
	}
	return list
}

func filter(t *testing.T, text string) *jmespath.Filter {
	t.Helper()
	f, err := jmespath.CompileFilter(text)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// TestCaller has requests and who makes them: first the ways of signing in, then attacks.
func TestCaller(t *testing.T) {
	options := roles.Options{
		Admins: prefixes("127.0.0.1/32", "::1/128", "10.1.0.0/16"), TrustedProxies: prefixes("192.0.2.10/32"), SiteMinderProxies: prefixes("192.0.2.20/32"),
		Tokens: tokens{"abc123": "admin-1"}, IsAdmin: filter(t, "contains(groups, 'admins')"), IsAuthorizedUser: filter(t, "contains(groups, 'staff')"),
		Verifier: verifier{
			"a.b.c": {"email": "boss@example.org", "groups": []any{"admins"}},
			"d.e.f": {"preferred_username": "ann", "groups": []any{"staff"}},
			"g.h.i": {"email": "eve@example.org"},
			"j.k.l": {"groups": []any{"admins"}},
		},
		Logger: slog.New(slog.DiscardHandler),
	}
	ours := roles.New(options)
	options.SiteMinderProxies = nil
	plain := roles.New(options)
	anonymous := roles.Caller{Role: roles.Anonymous}
	superAdmin := func(ip string) roles.Caller {
		return roles.Caller{SecurityID: ip, Strategy: "ip", Role: roles.SuperAdmin}
	}
	admin := roles.Caller{SecurityID: "admin-1", Strategy: "accessToken", Role: roles.Admin}
	ann := roles.Caller{SecurityID: "ann", Strategy: "siteMinder", Role: roles.User}
	certificate := &tls.ConnectionState{VerifiedChains: [][]*x509.Certificate{{{Subject: pkix.Name{CommonName: "robot"}}}}}
	for _, c := range []struct {
		name, from, target string
		headers            [][2]string
		tls                *tls.ConnectionState
		resolver           *roles.Resolver
		want               roles.Caller
	}{
		{name: "nothing", from: "203.0.113.1:5", want: anonymous},
		{name: "an address in the list", from: "127.0.0.1:5", want: superAdmin("127.0.0.1")},
		{name: "the same as IPv6", from: "[::ffff:10.1.2.3]:5", want: superAdmin("10.1.2.3")},
		{name: "is_anonymous", from: "127.0.0.1:5", headers: [][2]string{{"is_anonymous", "true"}, {"Authorization", "abc123"}}, want: anonymous},
		{name: "an access token", from: "203.0.113.1:5", headers: [][2]string{{"Authorization", "abc123"}}, want: admin},
		{name: "an access token in the query", from: "203.0.113.1:5", target: "/?access_token=abc123", want: admin},
		{name: "the address list overrides a token", from: "127.0.0.1:5", headers: [][2]string{{"Authorization", "abc123"}}, want: superAdmin("127.0.0.1")},
		{name: "a client certificate", from: "203.0.113.1:5", tls: certificate, headers: [][2]string{{"Authorization", "abc123"}}, want: roles.Caller{SecurityID: "robot", Strategy: "clientCertificate", Role: roles.SuperAdmin}},
		{name: "an administrator of the issuer", from: "203.0.113.1:5", headers: [][2]string{{"Authorization", "Bearer a.b.c"}}, want: roles.Caller{SecurityID: "boss@example.org", Strategy: "oidc", Role: roles.Admin}},
		{name: "a user of the issuer", from: "203.0.113.1:5", headers: [][2]string{{"Authorization", "bearer d.e.f"}}, want: roles.Caller{SecurityID: "ann", Strategy: "oidc", Role: roles.User}},
		{name: "a SiteMinder user", from: "192.0.2.20:5", headers: [][2]string{{"SM_UNIVERSALID", "ann"}, {"sm_user", "other"}}, want: ann},
		{name: "a SiteMinder user by the second header", from: "192.0.2.20:5", headers: [][2]string{{"sm_user", "ann"}}, want: ann},
		{name: "a SiteMinder proxy that forwards", from: "192.0.2.20:5", headers: [][2]string{{"sm_user", "ann"}, {"X-Forwarded-For", "203.0.113.9"}}, want: ann},
		{name: "a SiteMinder proxy behind a trusted proxy", from: "192.0.2.10:5", headers: [][2]string{{"sm_user", "ann"}, {"X-Forwarded-For", "203.0.113.9, 192.0.2.20"}}, want: ann},
		{name: "a SiteMinder user on this machine", from: "127.0.0.1:5", resolver: plain, headers: [][2]string{{"smgov_userdisplayname", "ann"}}, want: ann},
		{name: "an administrator behind a trusted proxy", from: "192.0.2.10:5", headers: [][2]string{{"X-Forwarded-For", "10.1.2.3"}}, want: superAdmin("10.1.2.3")},
		{name: "an unknown token beside a SiteMinder header", from: "192.0.2.20:5", headers: [][2]string{{"Authorization", "old"}, {"sm_user", "ann"}}, want: ann},

		{name: "attack: X-Forwarded-For from a proxy that is not named", from: "203.0.113.1:5", headers: [][2]string{{"X-Forwarded-For", "127.0.0.1"}}, want: anonymous},
		{name: "attack: a proxy on this machine that is not named", from: "127.0.0.1:5", headers: [][2]string{{"X-Forwarded-For", "203.0.113.1"}}, want: anonymous},
		{name: "attack: the same with X-Real-IP", from: "127.0.0.1:5", headers: [][2]string{{"X-Real-IP", "203.0.113.1"}}, want: anonymous},
		{name: "attack: the same with Via", from: "127.0.0.1:5", headers: [][2]string{{"Via", "1.1 proxy"}}, want: anonymous},
		{name: "attack: the client adds an address to the left", from: "192.0.2.10:5", headers: [][2]string{{"X-Forwarded-For", "10.1.2.3, 203.0.113.1"}}, want: anonymous},
		{name: "attack: in a header of its own", from: "192.0.2.10:5", headers: [][2]string{{"X-Forwarded-For", "10.1.2.3"}, {"X-Forwarded-For", "203.0.113.1"}}, want: anonymous},
		{name: "attack: no address", from: "192.0.2.10:5", headers: [][2]string{{"X-Forwarded-For", "10.1.2.3, unknown"}}, want: anonymous},
		{name: "attack: Forwarded without X-Forwarded-For", from: "192.0.2.10:5", headers: [][2]string{{"Forwarded", "for=10.1.2.3"}}, want: anonymous},
		{name: "attack: SiteMinder headers from another address", from: "203.0.113.1:5", headers: [][2]string{{"SM_UNIVERSALID", "ann"}}, want: anonymous},
		{name: "attack: SiteMinder headers by a trusted proxy from outside", from: "192.0.2.10:5", headers: [][2]string{{"sm_user", "ann"}, {"X-Forwarded-For", "203.0.113.1"}}, want: anonymous},
		{name: "attack: SiteMinder by a proxy on this machine that is not named", from: "127.0.0.1:5", resolver: plain, headers: [][2]string{{"sm_user", "ann"}, {"X-Forwarded-For", "203.0.113.1"}}, want: anonymous},
		{name: "attack: SiteMinder headers twice", from: "192.0.2.20:5", headers: [][2]string{{"sm_user", "ann"}, {"SM_USER", "boss"}}, want: anonymous},
		{name: "attack: a user with a control character", from: "192.0.2.20:5", headers: [][2]string{{"sm_user", "ann\x01"}}, want: anonymous},
		{name: "attack: a token that is not valid", from: "203.0.113.1:5", headers: [][2]string{{"Authorization", "Bearer x.y.z"}}, want: anonymous},
		{name: "attack: a valid token without the groups", from: "203.0.113.1:5", headers: [][2]string{{"Authorization", "Bearer g.h.i"}}, want: anonymous},
		{name: "attack: a valid token without a name", from: "203.0.113.1:5", headers: [][2]string{{"Authorization", "Bearer j.k.l"}}, want: anonymous},
		{name: "attack: an access token with a scheme", from: "203.0.113.1:5", headers: [][2]string{{"Authorization", "Basic abc123"}}, want: anonymous},
		{name: "attack: two tokens", from: "203.0.113.1:5", headers: [][2]string{{"Authorization", "abc123"}, {"Authorization", "x"}}, want: anonymous},
		{name: "attack: a certificate without a chain", from: "203.0.113.1:5", tls: &tls.ConnectionState{PeerCertificates: certificate.VerifiedChains[0]}, want: anonymous},
		{name: "a database that is away", from: "203.0.113.1:5", headers: [][2]string{{"Authorization", "broken"}}, want: anonymous},
		{name: "no address at all", from: "@", headers: [][2]string{{"sm_user", "ann"}}, want: anonymous},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.target == "" {
				c.target = "/"
			}
			r := httptest.NewRequest(http.MethodGet, c.target, nil)
			r.RemoteAddr, r.TLS = c.from, c.tls
			for _, h := range c.headers {
				r.Header.Add(h[0], h[1])
			}
			if c.resolver == nil {
				c.resolver = ours
			}
			if got := c.resolver.Caller(r); got != c.want {
				t.Errorf("%+v, want %+v", got, c.want)
			}
		})
	}
}
