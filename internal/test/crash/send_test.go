//go:build crashsteps

package crash

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"fanfare.dev/fanfare/client"
	"fanfare.dev/fanfare/internal/sink"
	"fanfare.dev/fanfare/internal/test/pgtest"
)

// sendSteps are passed when a part of a send becomes messages.
var sendSteps = []string{"before-send-part", "after-send-part"}

// listing is a document whose sends need no approval.
const listing = `
service: news
send_approval: none
channels:
  email: {driver: smtp, relay: %q, from: "News <news@example.org>", rate: unlimited, connections: %d}
templates:
  invitation: {subject: "Hello {{ sub.name }}", text: "See you, {{ sub.name }}.\n"}
`

// TestEachRowOfASendIsSentAcrossDeaths has the server die immediately before and after parts become messages. Each row of the list gets its mail, and
// no part is sent twice: a mail can arrive twice only for a connection that was open at a death.
func TestEachRowOfASendIsSentAcrossDeaths(t *testing.T) {
	t.Parallel()
	const rows = 20_000
	w := configured(tell(t), "fsync", pgtest.Chosen(t), listing, sink.Inject{})
	var list strings.Builder
	list.WriteString("to,name\n")
	for i := range rows {
		fmt.Fprintf(&list, "row%d@example.org,Person %d\n", i, i)
	}
	api := w.server.current().client
	send, err := api.CreateSend(w.given, client.SendRequest{Channel: "email", Template: "invitation"})
	if err == nil {
		_, err = api.UploadRecipients(w.given, send.ID, "", strings.NewReader(list.String()))
	}
	if err != nil {
		t.Fatal(err)
	}
	w.server.kill(w.server.current())
	deaths := 0
	submitted := false
	for _, step := range sendSteps {
		for passing := 1; passing <= 2; passing++ {
			at := fmt.Sprintf("%s:%d", step, passing)
			l := w.server.start("FANFARE_CRASH_AT=" + at)
			if !submitted { // later lives go on with the send, and may die before they answer
				submitted = true
				w.server.awaitReady(l)
				_, _ = l.client.SubmitSend(w.given, send.ID) // its answer may be cut off
			}
			w.server.awaitDeath(w.given, l, "died at "+at)
			deaths++
		}
	}
	w.server.awaitReady(w.server.start())
	w.until("the send is completed", func() bool {
		err = w.server.do(w.given, func(ctx context.Context, c *client.Client) error {
			send, err = c.ListSend(ctx, send.ID)
			return err
		})
		return err != nil || send.State == "completed"
	})
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]int{}
	for _, arrival := range w.sink.arrivals() {
		got[arrival.Recipient]++
	}
	twice := 0
	for i := range rows {
		address := fmt.Sprintf("row%d@example.org", i)
		if got[address] == 0 {
			t.Errorf("%s got nothing", address)
		}
		twice += max(0, got[address]-1)
	}
	if twice > deaths*connections || len(got) != rows {
		t.Errorf("%d mails arrived twice after %d deaths with %d connections; %d recipients", twice, deaths, connections, len(got))
	}
	t.Logf("%d deaths, %d mails twice", deaths, twice)
}
