//go:build crashsteps

package crash

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"fanfare.dev/fanfare/internal/sink"
	"fanfare.dev/fanfare/internal/test/pgtest"
)

// notifybcSteps are passed when a notification of NotifyBC is posted as an event, and when its outcome is stored.
var notifybcSteps = []string{"before-notifybc-post", "after-notifybc-post", "before-notifybc-end"}

// translating is a document for the NotifyBC API, which creates the topics.
const translating = `
service: news
channels:
  email: {driver: smtp, relay: %q, from: "News <news@example.org>", rate: unlimited, connections: %d}
`

// notifybcOf returns the address of the NotifyBC API of a life when it is open.
func (w *world) notifybcOf(l *life) string {
	w.t.Helper()
	w.server.awaitReady(l)
	select {
	case api := <-l.compat:
		return api
	case <-l.alive.Done():
		w.t.Fatalf("the server ended before the NotifyBC API was open: %v", l.died)
	case <-w.given.Done():
		w.t.Fatal(context.Cause(w.given))
	}
	return ""
}

// askNotifyBC sends a request to the NotifyBC API and decodes its answer. It returns an error if there is none.
func (w *world) askNotifyBC(l *life, method, address, body string, answer any) error {
	r, err := http.NewRequestWithContext(l.alive, method, address, strings.NewReader(body))
	if err != nil {
		return err
	}
	response, err := (&http.Client{Timeout: patience}).Do(r)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s %s: %s: %s", method, address, response.Status, text)
	}
	if err != nil {
		return err
	}
	return json.Unmarshal(text, answer)
}

// notifybcNotification is a notification as the API shows it.
type notifybcNotification struct {
	ID, State string
	Updated   time.Time
	Dispatch  struct {
		Successful []string
		Failed     []any
	}
}

// TestANotificationOfNotifyBCIsSentOnceAcrossDeaths has the server die immediately before and after a notification becomes an event, and before
// its outcome is stored, first in the request and then at the next start. Each subscription gets its mail, only connections that were open at
// a death can repeat one, and the notification ends as sent.
func TestANotificationOfNotifyBCIsSentOnceAcrossDeaths(t *testing.T) {
	t.Parallel()
	const people = 500
	settings := filepath.Join(t.TempDir(), "notifybc.yaml")
	if err := os.WriteFile(settings, []byte("service: news\nlisten: 127.0.0.1:0\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	w := configured(tell(t), "fsync", pgtest.Chosen(t), translating, sink.Inject{}, "FANFARE_NOTIFYBC="+settings)
	l := w.server.current()
	api := w.notifybcOf(l)
	for i := range people {
		var made struct{ State string }
		body := fmt.Sprintf(`{"serviceName":"weather","state":"confirmed","confirmationRequest":{"sendRequest":false},"userChannelId":"reader%d@example.org"}`, i)
		if err := w.askNotifyBC(l, "POST", api+"/subscriptions", body, &made); err != nil || made.State != "confirmed" {
			t.Fatal(err, made)
		}
	}
	w.server.kill(l)
	for _, step := range notifybcSteps {
		for _, kind := range []struct {
			name, members string
			mails         int
		}{
			{"broadcast", `"isBroadcast":true`, people},
			{"unicast", `"userChannelId":"reader0@example.org"`, 1},
		} {
			what := kind.name + " " + step
			l := w.server.start("FANFARE_CRASH_AT=" + step + ":1")
			api := w.notifybcOf(l)
			var answer notifybcNotification
			err := w.askNotifyBC(l, "POST", api+"/notifications", fmt.Sprintf(`{"serviceName":"weather","channel":"email",%s,"message":{"subject":"Storm","textBody":"%s"}}`, kind.members, what), &answer)
			w.server.awaitDeath(w.given, l, "died at "+what)
			if err == nil {
				t.Fatalf("%s: the request was answered: %+v", what, answer)
			}
			w.server.awaitDeath(w.given, w.server.start("FANFARE_CRASH_AT="+step+":1"), "died at "+what+" after a start")
			l = w.server.start()
			api = w.notifybcOf(l)
			var found []notifybcNotification
			query := url.QueryEscape(fmt.Sprintf(`{"where":{"message.textBody":%q}}`, what))
			w.until("the notification of "+what+" is sent", func() bool {
				if err := w.askNotifyBC(l, "GET", api+"/notifications?filter="+query, "", &found); err != nil || len(found) != 1 {
					t.Fatalf("%s: the notifications are %+v: %v", what, found, err)
				}
				// A notification is shown as sent before that is stored. If it were killed then, the next start would dispatch it, and die in the next step.
				arrivals := w.sink.arrivals()
				return found[0].State == "sent" && len(arrivals) > 0 && !found[0].Updated.Before(arrivals[len(arrivals)-1].At.Truncate(time.Millisecond))
			})
			if err := w.askNotifyBC(l, "GET", api+"/notifications/"+found[0].ID, "", &answer); err != nil {
				t.Fatal(err)
			}
			if n := len(answer.Dispatch.Successful); kind.name == "broadcast" && (n != people || answer.Dispatch.Failed != nil) {
				t.Errorf("%s: dispatch has %d successful subscriptions, and %v", what, n, answer.Dispatch.Failed)
			}
			w.server.kill(l)
			w.arrivedOnce(what, kind.mails, step == "after-notifybc-post")
		}
	}
}

// arrivedOnce checks the mails since the last call. Those that were being sent at a death may arrive twice.
func (w *world) arrivedOnce(what string, mails int, sending bool) {
	w.t.Helper()
	got, twice := map[string]int{}, 0
	arrivals := w.sink.arrivals()
	for _, a := range arrivals[w.seen:] {
		if got[a.Recipient]++; got[a.Recipient] > 1 {
			twice++
		}
	}
	w.seen = len(arrivals)
	allowed := 0
	if sending {
		allowed = 2 * connections
	}
	if len(got) != mails || twice > allowed {
		w.t.Errorf("%s: %d of %d people got a mail, %d mails arrived twice", what, len(got), mails, twice)
	}
}
