package apppassword_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"net/netip"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/emersion/go-sasl"
	"github.com/xdg-go/scram"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/mailbox"
	"fanfare.dev/fanfare/internal/mailbox/apppassword"
	"fanfare.dev/fanfare/internal/store/storetest"
)

var (
	noon = time.Date(2026, 11, 27, 12, 0, 0, 0, time.UTC)
	home = netip.MustParseAddr("192.0.2.1")
)

// testClock stands still until it is advanced.
type testClock struct {
	mu  sync.Mutex
	now time.Time
}

func (c *testClock) Now() time.Time { c.mu.Lock(); defer c.mu.Unlock(); return c.now }

func (c *testClock) advance(d time.Duration) { c.mu.Lock(); defer c.mu.Unlock(); c.now = c.now.Add(d) }

type world struct {
	*mailbox.Store
	*apppassword.Checker
	t     *testing.T
	clock *testClock
	log   *strings.Builder
}

func newWorld(t *testing.T) *world {
	w := &world{t: t, clock: &testClock{now: noon}, log: &strings.Builder{}}
	w.Store = mailbox.New(storetest.OpenAt(t, t.TempDir()), mailbox.Options{Clock: w.clock, Logger: slog.New(slog.DiscardHandler)})
	t.Cleanup(w.Close)
	w.Checker = apppassword.NewChecker(w.Store, w.clock, slog.New(slog.NewTextHandler(w.log, nil)))
	return w
}

// account creates an account with app passwords and returns them.
func (w *world) account(id int, service, address string, passwords int) []string {
	w.t.Helper()
	a, err := w.Create(w.t.Context(), mailbox.Owner{ID: mailbox.AccountID(id), Service: service, Address: address})
	if err != nil {
		w.t.Fatal(err)
	}
	var all []string
	for range passwords {
		all = append(all, w.add(a))
	}
	return all
}

func (w *world) add(a mailbox.Account) string {
	w.t.Helper()
	others, err := w.Credentials(w.t.Context(), a.ID)
	if err != nil {
		w.t.Fatal(err)
	}
	password := apppassword.Generate()
	v, err := apppassword.Verifier(a.Address, password, others)
	if err != nil {
		w.t.Fatal(err)
	}
	if err := w.AddCredential(w.t.Context(), a.ID, &mailbox.Credential{Name: "phone", Verifier: v}); err != nil {
		w.t.Fatal(err)
	}
	return password
}

// scramLogin logs in with the client of another library.
func (w *world) scramLogin(user, password string, from netip.Addr) (mailbox.Account, error) {
	w.t.Helper()
	client, err := scram.SHA256.NewClientUnprepped(user, password, "")
	if err != nil {
		w.t.Fatal(err)
	}
	talk := client.NewConversation()
	server := w.SCRAM(w.t.Context(), from)
	var challenge []byte
	var response *string
	for range 10 {
		var bytes []byte
		if response != nil {
			bytes = []byte(*response)
		}
		var done bool
		if challenge, done, err = server.Next(bytes); err != nil {
			return mailbox.Account{}, err
		}
		if done {
			if !talk.Valid() {
				return mailbox.Account{}, errors.New("the client does not believe the server")
			}
			return server.Account(), nil
		}
		text, err := talk.Step(string(challenge))
		if err != nil {
			return mailbox.Account{}, err
		}
		response = &text
	}
	return mailbox.Account{}, errors.New("the conversation does not end")
}

var _ sasl.Server = (*apppassword.Conversation)(nil)

func TestAppPasswordsHave96BitsAndDiffer(t *testing.T) {
	form := regexp.MustCompile(`^([a-km-np-z2-9]{5}-){3}[a-km-np-z2-9]{5}$`)
	seen := map[string]bool{}
	counts := map[rune]int{}
	const n = 2000
	for range n {
		p := apppassword.Generate()
		if !form.MatchString(p) || seen[p] {
			t.Fatalf("app password %q", p)
		}
		seen[p] = true
		for _, c := range strings.ReplaceAll(p, "-", "") {
			counts[c]++
		}
	}
	bits := 0.0
	for _, c := range counts {
		share := float64(c) / (n * 20)
		bits -= share * math.Log2(share)
	}
	if bits*20 < 96 {
		t.Errorf("20 characters with %.2f bits each have less than 96 bits", bits)
	}
}

func TestEachAppPasswordLogsIn(t *testing.T) {
	w := newWorld(t)
	passwords := w.account(1, "press", "joe@example.org", 3)
	w.account(2, "press", "ann@example.org", 1)
	for _, p := range passwords {
		for name, login := range map[string]func(string, string, netip.Addr) (mailbox.Account, error){"SCRAM": w.scramLogin, "PLAIN": w.plainLogin} {
			for _, user := range []string{"joe@example.org", "joe@EXAMPLE.org", "joe@example.org/press"} {
				if a, err := login(user, p, home); err != nil || a.ID != 1 {
					t.Errorf("%s as %s: account %d, %v", name, user, a.ID, err)
				}
			}
		}
	}
	credentials, err := w.Credentials(t.Context(), 1)
	if err != nil || !credentials[0].UsedAt.Equal(noon) || !credentials[2].UsedAt.Equal(noon) {
		t.Errorf("the app passwords are %+v, %v", credentials, err)
	}
	if err := w.RemoveCredential(t.Context(), 1, credentials[0].ID); err != nil {
		t.Fatal(err)
	}
	if _, err := w.scramLogin("joe@example.org", passwords[0], home); fanfare.CodeOf(err) != fanfare.Unauthenticated {
		t.Errorf("a revoked app password gives %v", err)
	}
	if strings.Contains(w.log.String(), passwords[0]) {
		t.Error("the log contains an app password")
	}
}

func (w *world) plainLogin(user, password string, from netip.Addr) (mailbox.Account, error) {
	return w.Plain(w.t.Context(), user, password, from)
}

func TestUnknownUsersCannotBeToldFromWrongPasswords(t *testing.T) {
	w := newWorld(t)
	w.account(1, "press", "joe@example.org", 1)
	w.account(2, "press", "none@example.org", 0)
	wrong := apppassword.Generate()
	var texts []string
	for i, user := range []string{"joe@example.org", "none@example.org", "nobody@example.org", "joe@example.org/other", "joe", "joe@", "a\x00b@example.org"} {
		from := netip.AddrFrom4([4]byte{192, 0, 2, byte(i)})
		for _, login := range []func(string, string, netip.Addr) (mailbox.Account, error){w.plainLogin, w.scramLogin} {
			_, err := login(user, wrong, from)
			if err == nil {
				t.Fatalf("%q logs in", user)
			}
			texts = append(texts, err.Error())
		}
		first, _, err := w.SCRAM(t.Context(), from).Next([]byte("n,,n=" + strings.ReplaceAll(user, "\x00", "") + ",r=abc"))
		if again, _, _ := w.SCRAM(t.Context(), from).Next([]byte("n,,n=" + strings.ReplaceAll(user, "\x00", "") + ",r=abc")); err != nil || salt(first) == "" || salt(first) != salt(again) || !strings.HasSuffix(string(first), ",i=4096") {
			t.Errorf("%q has the challenges %q and %q, %v", user, first, again, err)
		}
	}
	for _, text := range texts {
		if text != texts[0] {
			t.Errorf("the errors %q and %q differ", texts[0], text)
		}
	}
}

func salt(challenge []byte) string {
	_, after, _ := strings.Cut(string(challenge), ",s=")
	s, _, _ := strings.Cut(after, ",")
	return s
}

func TestServicesWithTheSameAddressAreDistinct(t *testing.T) {
	w := newWorld(t)
	press := w.account(1, "press", "joe@example.org", 1)
	shop := w.account(2, "shop", "joe@example.org", 1)
	for _, login := range []func(string, string, netip.Addr) (mailbox.Account, error){w.plainLogin, w.scramLogin} {
		for _, c := range []struct {
			user, password string
			want           mailbox.AccountID
		}{{"joe@example.org", press[0], 1}, {"joe@example.org", shop[0], 2}, {"joe@example.org/shop", shop[0], 2}, {"joe@example.org/press", shop[0], 0}} {
			if a, err := login(c.user, c.password, home); a.ID != c.want || (err == nil) != (c.want != 0) {
				t.Errorf("%s logs in to %d, %v", c.user, a.ID, err)
			}
		}
	}
	// The salt of an app password depends on the address; that of this one is from another.
	w.account(3, "other", "joe@example.org", 0)
	moved := []string{w.add(mailbox.Account{Owner: mailbox.Owner{ID: 3, Service: "other", Address: "old@example.org"}})}
	if _, err := w.scramLogin("joe@example.org", moved[0], home); err == nil || !strings.Contains(err.Error(), "address/service") {
		t.Errorf("an ambiguous name gives %v", err)
	}
	if a, err := w.scramLogin("joe@example.org/other", moved[0], home); err != nil || a.ID != 3 {
		t.Errorf("address and service log in to %d, %v", a.ID, err)
	}
	if a, err := w.plainLogin("joe@example.org", moved[0], home); err != nil || a.ID != 3 {
		t.Errorf("PLAIN logs in to %d, %v", a.ID, err)
	}
}

func TestDisabledAccountsCannotLogIn(t *testing.T) {
	w := newWorld(t)
	p := w.account(1, "press", "joe@example.org", 1)
	if err := w.SetDisabled(t.Context(), 1, true); err != nil {
		t.Fatal(err)
	}
	if _, err := w.plainLogin("joe@example.org", p[0], home); fanfare.CodeOf(err) != fanfare.Forbidden {
		t.Errorf("PLAIN gives %v", err)
	}
	if _, err := w.scramLogin("joe@example.org", p[0], home); fanfare.CodeOf(err) != fanfare.Forbidden {
		t.Errorf("SCRAM gives %v", err)
	}
	if _, err := w.plainLogin("joe@example.org", apppassword.Generate(), home); fanfare.CodeOf(err) != fanfare.Unauthenticated {
		t.Errorf("a wrong password gives %v", err)
	}
}

func TestGuessesFromOneAddressAreLimited(t *testing.T) {
	w := newWorld(t)
	p := w.account(1, "press", "joe@example.org", 1)
	attacker := netip.MustParseAddr("2001:db8::1")
	limited := 0
	for i := range 60 {
		from := attacker
		if i%2 == 1 { // the same network
			from = netip.MustParseAddr("2001:db8::ffff")
		}
		_, err := w.plainLogin(fmt.Sprintf("user%d@example.org", i), "wrong", from)
		if fanfare.CodeOf(err) == fanfare.RateLimited {
			limited++
		}
	}
	if limited != 30 {
		t.Errorf("%d of 60 guesses were refused without a check, want 30", limited)
	}
	if _, err := w.scramLogin("joe@example.org", p[0], attacker); fanfare.CodeOf(err) != fanfare.RateLimited {
		t.Errorf("SCRAM from the address gives %v", err)
	}
	if _, err := w.plainLogin("joe@example.org", p[0], home); err != nil {
		t.Errorf("another address is refused: %v", err)
	}
	w.clock.advance(time.Minute)
	if _, err := w.plainLogin("joe@example.org", p[0], attacker); err != nil {
		t.Errorf("after a minute the address is refused: %v", err)
	}
}

func TestGuessesAtOneAccountAreLimitedButItsOwnerLogsIn(t *testing.T) {
	w := newWorld(t)
	p := w.account(1, "press", "joe@example.org", 1)
	if _, err := w.plainLogin("joe@example.org", p[0], home); err != nil {
		t.Fatal(err)
	}
	limited := 0
	for i := range 150 {
		from := netip.AddrFrom4([4]byte{198, 51, 100, byte(i)})
		if _, err := w.plainLogin("joe@example.org", "wrong", from); fanfare.CodeOf(err) == fanfare.RateLimited {
			limited++
		}
	}
	if limited != 50 {
		t.Errorf("%d of 150 guesses were refused without a check, want 50", limited)
	}
	if _, err := w.plainLogin("joe@example.org", p[0], home); err != nil {
		t.Errorf("the owner is locked out: %v", err)
	}
	if _, err := w.plainLogin("ann@example.org", "wrong", netip.MustParseAddr("203.0.113.1")); fanfare.CodeOf(err) != fanfare.Unauthenticated {
		t.Errorf("another account gives %v", err)
	}
}

func TestMalformedMessagesAreRefused(t *testing.T) {
	w := newWorld(t)
	p := w.account(1, "press", "joe@example.org", 1)
	for _, first := range []string{"", "n", "n,,", "n,,n=joe@example.org", "p=tls-unique,,n=joe@example.org,r=abc", "x,,n=joe@example.org,r=abc", "n,a=ann@example.org,n=joe@example.org,r=abc",
		"n,,m=x,n=joe@example.org,r=abc", "n,,n=jo=e@example.org,r=abc", "n,,n=joe@example.org,r=", "n,,n=joe@example.org,r=a\x01c", strings.Repeat("n", 5000)} {
		if _, _, err := w.SCRAM(t.Context(), home).Next([]byte(first)); fanfare.CodeOf(err) != fanfare.Invalid {
			t.Errorf("the first message %.50q gives %v", first, err)
		}
	}
	for _, final := range []string{"", "c=biws,r=NONCE", "c=biws,r=NONCE,p=", "c=biws,r=NONCE,p=!", "c=eSws,r=NONCE,p=" + strings.Repeat("A", 43) + "=", "c=biws,r=other,p=" + strings.Repeat("A", 43) + "="} {
		s := w.SCRAM(t.Context(), home)
		challenge, _, err := s.Next([]byte("n,,n=joe@example.org,r=abc"))
		if err != nil {
			t.Fatal(err)
		}
		nonce, _, _ := strings.Cut(strings.TrimPrefix(string(challenge), "r="), ",")
		if _, _, err := s.Next([]byte(strings.ReplaceAll(final, "NONCE", nonce))); fanfare.CodeOf(err) != fanfare.Invalid {
			t.Errorf("the final message %q gives %v", final, err)
		}
		if _, _, err := s.Next(nil); err == nil {
			t.Error("the conversation continues after an error")
		}
	}
	for _, plain := range []string{"", "a", "\x00a", "x\x00a\x00b", "\x00a\x00b\x00c"} {
		if _, _, err := apppassword.ParsePlain([]byte(plain)); fanfare.CodeOf(err) != fanfare.Invalid {
			t.Errorf("PLAIN %q gives %v", plain, err)
		}
	}
	for _, plain := range []string{"\x00joe\x00p", "joe\x00joe\x00p"} {
		if user, password, err := apppassword.ParsePlain([]byte(plain)); err != nil || user != "joe" || password != "p" {
			t.Errorf("PLAIN %q gives %q, %q, %v", plain, user, password, err)
		}
	}
	if _, err := w.scramLogin("joe@example.org", p[0], home); err != nil {
		t.Errorf("afterwards the owner cannot log in: %v", err)
	}
}

func TestStoreErrorsAreNotWrongLogins(t *testing.T) {
	w := newWorld(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for range 100 {
		if _, err := w.Plain(ctx, "joe@example.org", "x", home); err == nil || fanfare.CodeOf(err) == fanfare.Unauthenticated || fanfare.CodeOf(err) == fanfare.RateLimited {
			t.Fatalf("a failed read gives %v", err)
		}
	}
}

func FuzzSCRAM(f *testing.F) {
	f.Add([]byte("n,,n=joe@example.org,r=abc"), []byte("c=biws,r=abc,p=AAAA"))
	f.Add([]byte("y,a=joe,n=joe,r=abc,x=y"), []byte(""))
	f.Fuzz(func(t *testing.T, first, final []byte) {
		c := apppassword.NewChecker(noStore{}, &testClock{now: noon}, slog.New(slog.DiscardHandler))
		s := c.SCRAM(t.Context(), home)
		if _, _, err := s.Next(first); err != nil {
			return
		}
		if _, done, err := s.Next(final); err == nil || done {
			t.Fatalf("%q and %q log in", first, final)
		}
		_, _, _ = apppassword.ParsePlain(first)
		_, _ = c.Plain(t.Context(), string(first), string(final), home)
	})
}

// noStore has no accounts.
type noStore struct{}

func (noStore) AccountsOf(context.Context, string) ([]mailbox.Account, error) { return nil, nil }

func (noStore) Credentials(context.Context, mailbox.AccountID) ([]mailbox.Credential, error) {
	return nil, nil
}

func (noStore) UsedCredential(context.Context, mailbox.AccountID, int64) error { return nil }
