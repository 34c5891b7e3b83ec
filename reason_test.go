package fanfare

import (
	"fmt"
	"strings"
	"testing"
)

// The replies are those of real servers: Postfix, Exim, Gmail, Outlook, and of our own drivers.
func TestReasonOmitsWordsAboutOneRecipient(t *testing.T) {
	for _, c := range []struct {
		code       int
		text, want string
	}{
		{550, "5.1.1 <ada@example.com>: Recipient address rejected: User unknown in local recipient table", "550 5.1.1 … Recipient address rejected: User unknown in local recipient table"},
		{550, "550 5.1.1 <ada@example.com>: Recipient address rejected", "550 5.1.1 … Recipient address rejected"},
		{550, "5.7.26 Unauthenticated email from example.org is not accepted due to domain's DMARC policy. a640c23a62f3a-ae6f7d0c4b2si97 - gsmtp", "550 5.7.26 Unauthenticated email from example.org is not accepted due to domain's DMARC policy. … - gsmtp"},
		{452, "4.2.2 Mailbox full", "452 4.2.2 Mailbox full"},
		{410, "", "410"},
		{0, "hard_bounce", "hard_bounce"},
		{0, "dial tcp 10.0.0.1:25: connect: connection refused", "dial tcp … connect: connection refused"},
		{0, "", ""},
		{550, "12.1.1 1.2 5.1.1111", "550 …"},
		{554, strings.Repeat("very ", 100), "554" + strings.Repeat(" very", 23)},
	} {
		if got := ReasonOf(c.code, c.text); got != c.want {
			t.Errorf("ReasonOf(%d, %q) = %q, want %q", c.code, c.text, got, c.want)
		}
	}
}

func TestReasonsAreCountedUpToALimit(t *testing.T) {
	var all Reasons
	different := func(i int) string { return "reason " + strings.Repeat("x", i+1) }
	for i := range MaxReasons + 5 {
		for range 2 {
			all = all.Add(&Entry{State: Failed, Text: fmt.Sprint(different(i%39), " ", different(i/39))})
		}
	}
	all = all.Add(&Entry{State: Expired, Text: "one more"})
	if len(all) != MaxReasons+2 {
		t.Fatalf("%d reasons, want %d", len(all), MaxReasons+2)
	}
	var sum int64
	for _, one := range all {
		sum += one.Deliveries
	}
	if last := all[MaxReasons]; last != (ReasonCount{"failed", FurtherReasons, 10}) {
		t.Errorf("the reasons beyond the limit: %+v", last)
	}
	if last := all[MaxReasons+1]; last != (ReasonCount{"expired", FurtherReasons, 1}) || sum != 2*(MaxReasons+5)+1 {
		t.Errorf("the last reason: %+v, sum %d", last, sum)
	}
}
