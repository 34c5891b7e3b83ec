package recipientpages

import (
	"fmt"
	"net/netip"
	"net/url"
	"testing"
	"time"

	"fanfare.dev/fanfare/internal/mail/linktoken"
)

func newSignupLimits(t *testing.T) *signupLimits {
	t.Helper()
	seals, err := linktoken.New([]byte("a secret of enough bytes"))
	if err != nil {
		t.Fatal(err)
	}
	return &signupLimits{seals: seals}
}

// form returns a form that was issued at a time, for submission without a script.
func (d *signupLimits) form(t *testing.T, what string, at time.Time) url.Values {
	t.Helper()
	token, err := d.token(what, at)
	if err != nil {
		t.Fatal(err)
	}
	return url.Values{"token": {token}}
}

func TestAFormIsGoodOnceForItsTopicAndForAWhile(t *testing.T) {
	d, home, began := newSignupLimits(t), netip.MustParseAddr("192.0.2.1"), time.Unix(1_800_000_000, 0)
	sent := d.form(t, "news/storm", began)
	trap := url.Values{"token": sent["token"], "website": {"x"}}
	for _, c := range []struct {
		name  string
		topic string
		sent  url.Values
		after time.Duration
		want  decision
	}{
		{"at once and without proof", "storm", sent, 2 * time.Second, tooFast},
		{"of another topic", "story", sent, time.Minute, staleForm},
		{"with the hidden field", "storm", trap, time.Minute, hiddenFieldFilled},
		{"of nobody", "storm", url.Values{"token": {"AAAA"}}, time.Minute, staleForm},
		{"as people do", "storm", sent, time.Minute, allowed},
		{"again", "storm", sent, 2 * time.Minute, staleForm},
		{"too old", "storm", d.form(t, "news/storm", began), formLifetime + 2*time.Second, staleForm},
	} {
		if got := d.decide(home, "news", c.topic, c.sent, began.Add(c.after)); got != c.want {
			t.Errorf("%s: %d, want %d", c.name, got, c.want)
		}
	}
}

func TestANetworkAndAMailboxHaveEnoughAtSomeTime(t *testing.T) {
	d, now := newSignupLimits(t), time.Unix(1_800_000_000, 0)
	one, other := netip.MustParseAddr("192.0.2.1"), netip.MustParseAddr("192.0.2.2")
	enter := func(from netip.Addr, at time.Time) decision {
		return d.decide(from, "news", "storm", d.form(t, "news/storm", at.Add(-minFillTime)), at)
	}
	for range perNetworkWithoutProof.burst {
		if got := enter(one, now); got != allowed {
			t.Fatalf("%d", got)
		}
	}
	if enter(one, now) != tooMany || enter(other, now) != allowed || enter(one, now.Add(perNetworkWithoutProof.every)) != allowed {
		t.Error("the rate of one network is not its own")
	}
	for _, to := range []string{"ada@example.org", "ADA@example.org", "ada+more@example.org"} {
		if !d.mayMail("news", to, now) {
			t.Errorf("%s has had enough", to)
		}
	}
	if d.mayMail("news", "ada+other@example.org", now) || !d.mayMail("games", "ada@example.org", now) || !d.mayMail("news", "eve@example.org", now) {
		t.Error("the rate of a mailbox is not its own")
	}
}

// A client that fills the table does not remove the limits.
func TestWhenAllIsFullNobodyElseIsLetIn(t *testing.T) {
	d, now := newSignupLimits(t), time.Unix(1_800_000_000, 0)
	if !d.mayMail("news", "known@example.org", now) {
		t.Fatal("the first has had enough")
	}
	for i := 0; len(d.fullAt) < maxEntries; i++ {
		d.fullAt[entryKey(fmt.Sprint(i))] = now.Add(time.Hour).UnixNano()
	}
	if d.mayMail("news", "new@example.org", now) || !d.mayMail("news", "known@example.org", now) {
		t.Error("who is new is let in, or who is known is not")
	}
	if !d.mayMail("news", "new@example.org", now.Add(2*time.Hour)) {
		t.Error("nobody is let in when it is over")
	}
}
