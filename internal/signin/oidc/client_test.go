package oidc_test

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"os"
	"strings"
	"testing"
	"time"

	"fanfare.dev/fanfare/internal/signin/oidc"
	"fanfare.dev/fanfare/internal/test/issuer"
)

const callback = "http://127.0.0.1:8085/console/sign-in/oidc/callback"

var address = netip.MustParseAddr("192.0.2.1")

// A world is a client with one issuer.
type world struct {
	*oidc.Client
	t      *testing.T
	issuer *issuer.Issuer
	step   time.Duration // of the clock, beside the real time
	wants  []string
}

func (w *world) Now() time.Time { return time.Now().Add(w.step) }

// settings returns the settings for issuers.
func settings(t *testing.T, more string, all ...*issuer.Issuer) *oidc.Settings {
	t.Helper()
	text := "issuers:\n"
	for n, i := range all {
		text += fmt.Sprintf("- {id: i%d, name: I, issuer: %q, client_id: %s, client_secret_env: SECRET%s}\n", n, i.URL, issuer.ClientID, more)
	}
	s, err := oidc.Parse([]byte(text), oidc.Sources{ReadFile: os.ReadFile, LookupEnv: func(string) (string, bool) { return issuer.ClientSecret, true }})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func start(t *testing.T) *world {
	t.Helper()
	w := &world{t: t, issuer: issuer.Start(t)}
	w.Client = oidc.New(oidc.Options{Issuers: settings(t, "", w.issuer).Issuers, Claims: func(string) []string { return w.wants }, Clock: w})
	return w
}

func (w *world) begin() oidc.Start {
	w.t.Helper()
	begun, err := w.Begin(w.t.Context(), "i0", callback, "/console/events", address)
	if err != nil {
		w.t.Fatal(err)
	}
	return begun
}

// reply goes to the issuer, and returns its reply.
func (w *world) reply(begun oidc.Start) url.Values {
	w.t.Helper()
	back := w.issuer.Visit(w.t, begun.URL)
	if !strings.HasPrefix(back.String(), callback+"?") {
		w.t.Fatalf("the issuer sends the person to %s", back)
	}
	return back.Query()
}

// signIn signs in from the beginning to the end.
func (w *world) signIn() (oidc.Result, error) {
	w.t.Helper()
	begun := w.begin()
	return w.Finish(w.t.Context(), begun.Browser, w.reply(begun))
}

func (w *world) mustRefuse(what string, err error, reason oidc.Refusal) {
	w.t.Helper()
	if got, ok := errors.AsType[oidc.Refusal](err); !ok || got != reason {
		w.t.Errorf("%s: %v, want %s", what, err, reason)
	}
	if err != nil && strings.Contains(err.Error(), issuer.ClientSecret) {
		w.t.Errorf("%s: the error shows the secret: %v", what, err)
	}
}

func TestAPersonSignsIn(t *testing.T) {
	w := start(t)
	w.wants = []string{"groups"}
	w.issuer.Change(func(s *issuer.State) {
		s.UserInfo = map[string]any{"groups": []string{"a", "b"}, "name": "Another Name"}
	})
	done, err := w.signIn()
	p := done.Person
	if err != nil || p.Issuer != w.issuer.URL || p.Subject != "ada-1" || p.Name != "Ada Example" || p.Mail != "ada@example.com" || done.Path != "/console/events" || fmt.Sprint(p.Values("groups")) != "[a b]" {
		t.Errorf("%+v, %v", done, err)
	}
	if _, err := w.signIn(); err != nil || w.issuer.Discoveries() != 1 {
		t.Errorf("%v after %d discoveries", err, w.issuer.Discoveries())
	}
}

// An address and its verification come from the same source.
func TestAMailAddressIsVerifiedWhereItIsStated(t *testing.T) {
	for _, c := range []struct {
		token, info map[string]any // changes
		want        string
	}{
		{map[string]any{"email_verified": nil}, map[string]any{"email_verified": true}, ""},
		{map[string]any{"email_verified": false}, map[string]any{"email": "eve@example.com", "email_verified": true}, "eve@example.com"},
		{map[string]any{}, map[string]any{"email": "eve@example.com", "email_verified": true}, "ada@example.com"},
	} {
		w := start(t)
		w.wants = []string{"groups"}
		w.issuer.Change(func(s *issuer.State) { s.Token, s.UserInfo = c.token, c.info })
		if done, err := w.signIn(); err != nil || done.Person.Mail != c.want {
			t.Errorf("%v and %v: the mail address is %q (%v), want %q", c.token, c.info, done.Person.Mail, err, c.want)
		} else if got := strings.Join(done.Person.Values("email"), " "); got != c.want {
			t.Errorf("%v and %v: roles depend on %q, want %q", c.token, c.info, got, c.want)
		}
	}
}

func TestTokensThatAreNotForThisSignInAreRejected(t *testing.T) {
	other := issuer.Start(t)
	hour := time.Hour
	for name, change := range map[string]func(s *issuer.State){
		"a wrong nonce":            func(s *issuer.State) { s.Token = map[string]any{"nonce": strings.Repeat("n", 43)} },
		"no nonce":                 func(s *issuer.State) { s.Token = map[string]any{"nonce": nil} },
		"another audience":         func(s *issuer.State) { s.Token = map[string]any{"aud": "somebody else"} },
		"no audience":              func(s *issuer.State) { s.Token = map[string]any{"aud": nil} },
		"several audiences":        func(s *issuer.State) { s.Token = map[string]any{"aud": []string{"x", issuer.ClientID}} },
		"another authorized party": func(s *issuer.State) { s.Token = map[string]any{"aud": []string{"x", issuer.ClientID}, "azp": "x"} },
		"expired":                  func(s *issuer.State) { s.Token = map[string]any{"exp": time.Now().Add(-time.Second).Unix()} },
		"no expiry":                func(s *issuer.State) { s.Token = map[string]any{"exp": nil} },
		"not valid yet":            func(s *issuer.State) { s.Token = map[string]any{"nbf": time.Now().Add(hour).Unix()} },
		"another issuer":           func(s *issuer.State) { s.Token = map[string]any{"iss": other.URL} },
		"no subject":               func(s *issuer.State) { s.Token = map[string]any{"sub": nil} },
		"a very long subject":      func(s *issuer.State) { s.Token = map[string]any{"sub": strings.Repeat("s", 300)} },
		"a subject of two lines":   func(s *issuer.State) { s.Token = map[string]any{"sub": "a\nb"} },
		"alg none": func(s *issuer.State) {
			s.Header = map[string]any{"alg": "none"}
			s.Sign = func(string) []byte { return nil }
		},
		"alg None": func(s *issuer.State) {
			s.Header = map[string]any{"alg": "None"}
			s.Sign = func(string) []byte { return nil }
		},
		"HMAC":                          func(s *issuer.State) { s.Header = map[string]any{"alg": "HS256"} },
		"an algorithm not offered":      func(s *issuer.State) { s.Header = map[string]any{"alg": "RS256"} },
		"an unknown key":                func(s *issuer.State) { s.Header = map[string]any{"kid": "k2"} },
		"a wrong signature":             func(s *issuer.State) { s.Sign = func(string) []byte { return make([]byte, 64) } },
		"claims of somebody else":       func(s *issuer.State) { s.UserInfo = map[string]any{"sub": "eve"} },
		"no code":                       func(s *issuer.State) { s.Reply = func(reply url.Values) { reply.Del("code") } },
		"a wrong code":                  func(s *issuer.State) { s.Reply = func(reply url.Values) { reply.Set("code", "guess") } },
		"the reply of another issuer":   func(s *issuer.State) { s.Reply = func(reply url.Values) { reply.Set("iss", other.URL) } },
		"a reply that hides the issuer": func(s *issuer.State) { s.Reply = func(reply url.Values) { reply.Del("iss") } },
		"two codes":                     func(s *issuer.State) { s.Reply = func(reply url.Values) { reply.Add("code", "other") } },
		"an error":                      func(s *issuer.State) { s.Denies = "invalid_scope" },
	} {
		w := start(t)
		w.wants = []string{"groups"}
		if _, err := w.signIn(); err != nil { // the keys are known
			t.Fatal(err)
		}
		w.issuer.Change(change)
		done, err := w.signIn()
		w.mustRefuse(name, err, oidc.Rejected)
		if done.Person.Subject != "" {
			t.Errorf("%s: signs in %+v", name, done.Person)
		}
	}
	w := start(t)
	w.issuer.Change(func(s *issuer.State) { s.Denies = "access_denied" })
	_, err := w.signIn()
	w.mustRefuse("the person declines", err, oidc.Denied)
}

// A token of one issuer that the server knows does not sign in with another one.
func TestIssuersAreNotMixedUp(t *testing.T) {
	one, two := issuer.Start(t), issuer.Start(t)
	c := oidc.New(oidc.Options{Issuers: settings(t, "", one, two).Issuers, Claims: func(string) []string { return nil }, Clock: clockNow{}})
	w := &world{Client: c, t: t, issuer: one}
	begun := w.begin()
	toTwo, _ := url.Parse(begun.URL)
	there, _ := url.Parse(two.URL)
	toTwo.Host = there.Host // the issuer that the person visits is another one than the flow is with
	_, err := c.Finish(t.Context(), begun.Browser, two.Visit(t, toTwo.String()).Query())
	w.mustRefuse("a reply of the other issuer", err, oidc.Rejected)

	two.Change(func(s *issuer.State) { s.Token = map[string]any{"iss": one.URL} })
	begun, err = c.Begin(t.Context(), "i1", callback, "/console/", address)
	if err != nil {
		t.Fatal(err)
	}
	_, err = c.Finish(t.Context(), begun.Browser, two.Visit(t, begun.URL).Query())
	w.mustRefuse("a token in the name of the other issuer", err, oidc.Rejected)
}

type clockNow struct{}

func (clockNow) Now() time.Time { return time.Now() }

func TestAFlowBelongsToOneBrowserAndEndsOnce(t *testing.T) {
	w := start(t)
	w.issuer.Change(func(s *issuer.State) { s.Reusable = true })
	begun := w.begin()
	reply := w.reply(begun)
	if _, err := w.Finish(t.Context(), begun.Browser, reply); err != nil {
		t.Fatal(err)
	}
	_, err := w.Finish(t.Context(), begun.Browser, reply)
	w.mustRefuse("a reply that is repeated", err, oidc.Expired)

	for name, browser := range map[string]string{"no cookie": "", "a guessed cookie": "guess", "the cookie of another flow": w.begin().Browser} {
		begun := w.begin()
		reply := w.reply(begun)
		_, err := w.Finish(t.Context(), browser, reply)
		w.mustRefuse(name, err, oidc.Expired)
		_, err = w.Finish(t.Context(), begun.Browser, reply)
		w.mustRefuse(name+", then the right one", err, oidc.Expired)
	}
	begun = w.begin()
	reply = w.reply(begun)
	reply.Set("state", strings.Repeat("s", 43))
	_, err = w.Finish(t.Context(), begun.Browser, reply)
	w.mustRefuse("a wrong state", err, oidc.Expired)
	reply.Del("state")
	_, err = w.Finish(t.Context(), begun.Browser, reply)
	w.mustRefuse("no state", err, oidc.Expired)

	begun = w.begin()
	reply = w.reply(begun)
	w.step = oidc.FlowTime
	_, err = w.Finish(t.Context(), begun.Browser, reply)
	w.mustRefuse("too late", err, oidc.Expired)

	_, err = w.Begin(t.Context(), "unknown", callback, "/", address)
	w.mustRefuse("an unknown issuer", err, oidc.Unknown)
}

func TestFlowsAreBounded(t *testing.T) {
	w := start(t)
	first := w.begin()
	for range 500 {
		w.begin()
	}
	_, err := w.Finish(t.Context(), first.Browser, w.reply(first))
	w.mustRefuse("the oldest of many flows of one address", err, oidc.Expired)
	for n := range 20 {
		from := netip.AddrFrom4([4]byte{198, 51, 100, byte(n)})
		for range 500 {
			if _, err = w.Begin(t.Context(), "i0", callback, "/", from); err != nil {
				break
			}
		}
	}
	w.mustRefuse("too many flows", err, oidc.Busy)
	w.step = oidc.FlowTime
	w.begin()
}

func TestAnIssuerThatIsDownIsAskedAgainLater(t *testing.T) {
	w := start(t)
	w.issuer.Change(func(s *issuer.State) { s.Down = true })
	_, err := w.Begin(t.Context(), "i0", callback, "/", address)
	w.mustRefuse("down", err, oidc.Unavailable)
	w.issuer.Change(func(s *issuer.State) { s.Down = false })
	_, err = w.Begin(t.Context(), "i0", callback, "/", address)
	w.mustRefuse("just after a failure", err, oidc.Unavailable)
	w.step = time.Minute
	begun := w.begin()
	reply := w.reply(begun)
	w.issuer.Change(func(s *issuer.State) { s.Down = true })
	_, err = w.Finish(t.Context(), begun.Browser, reply)
	w.mustRefuse("down during the exchange", err, oidc.Unavailable)
	w.step = 2 * time.Hour
	if w.begin().URL == "" {
		t.Error("what was discovered before is not used")
	}
}

func TestDiscoveryIsLimited(t *testing.T) {
	for name, change := range map[string]func(s *issuer.State){
		"an endless document": func(s *issuer.State) { s.Endless = true },
		"another issuer":      func(s *issuer.State) { s.Discovery = map[string]any{"issuer": "https://other.example.org"} },
		"tokens in the clear": func(s *issuer.State) {
			s.Discovery = map[string]any{"token_endpoint": "http://other.example.org/token"}
		},
		"keys in the clear":        func(s *issuer.State) { s.Discovery = map[string]any{"jwks_uri": "http://other.example.org/keys"} },
		"no endpoint":              func(s *issuer.State) { s.Discovery = map[string]any{"authorization_endpoint": nil} },
		"an endpoint with scripts": func(s *issuer.State) { s.Discovery = map[string]any{"authorization_endpoint": "javascript:alert(1)"} },
		"another authentication": func(s *issuer.State) {
			s.Discovery = map[string]any{"token_endpoint_auth_methods_supported": []string{"private_key_jwt"}}
		},
	} {
		w := start(t)
		w.issuer.Change(change)
		_, err := w.Begin(t.Context(), "i0", callback, "/", address)
		w.mustRefuse(name, err, oidc.Unavailable)
	}
}

func TestRepliesOfTheTokenEndpointAreLimited(t *testing.T) {
	w := start(t)
	begun := w.begin()
	reply := w.reply(begun)
	w.issuer.Change(func(s *issuer.State) { s.Endless = true })
	_, err := w.Finish(t.Context(), begun.Browser, reply)
	w.mustRefuse("an endless reply", err, oidc.Unavailable)
}

func TestABeginDoesNotWaitForABrowserThatLeft(t *testing.T) {
	w := start(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := w.Begin(ctx, "i0", callback, "/", address); err != nil {
		t.Errorf("the discovery of one browser is of use to all: %v", err)
	}
}
