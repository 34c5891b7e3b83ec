package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// offerNotifyBC starts a server with the NotifyBC API, whose address it returns.
func offerNotifyBC(t *testing.T) (s *server, api string) {
	t.Helper()
	settings := filepath.Join(t.TempDir(), "notifybc.yaml")
	if err := os.WriteFile(settings, []byte("service: news\nlisten: 127.0.0.1:0\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	s = serve(t, "--notifybc", settings)
	open := regexp.MustCompile(`serving the NotifyBC API.*?(http://127[^\s"]+)`)
	eventually(t, "the NotifyBC API is open", func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		if found := open.FindStringSubmatch(s.log.String()); found != nil {
			api = found[1]
		}
		return api != ""
	})
	s.http.must(200, "POST", "/v1/apply", yaml, "service: news\nchannels:\n  email: {driver: smtp, relay: \"127.0.0.1:1\", from: news@example.org}\n")
	return s, api
}

// exportedFrom is a subscription as mongoexport writes it.
func exportedFrom(n int, state string) string {
	return fmt.Sprintf(`{"_id":{"$oid":"5f1d7b2e9c8a4b001234%04d"},"serviceName":"myService","channel":"email","userChannelId":"reader%d@example.org","state":%q,"unsubscriptionCode":"%05d",`+
		`"broadcastPushNotificationFilter":"contains_ci(title,'storm')","created":{"$date":"2021-05-06T07:08:09.123Z"},"own":%d}`, n, n, state, n, n)
}

func TestAnExportIsImportedByTheCommand(t *testing.T) {
	t.Parallel()
	s, api := offerNotifyBC(t)
	dir := t.TempDir()
	write := func(name string, lines ...string) string {
		t.Helper()
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(strings.Join(lines, "\n")+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	list := func(resource string) (records []map[string]any) {
		t.Helper()
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, api+resource, http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		response, err := plainHTTP.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		defer response.Body.Close()
		if err := json.NewDecoder(response.Body).Decode(&records); err != nil || response.StatusCode != 200 {
			t.Fatalf("%s: %s %v", resource, response.Status, err)
		}
		return records
	}

	// Names of collections in different forms, and an array whose documents have several lines.
	var lines []string
	for n := range 2500 {
		lines = append(lines, exportedFrom(n, "confirmed"))
	}
	subscriptions := write("Subscriptions.json", lines...)
	array := write("part2.json", "[", strings.ReplaceAll(exportedFrom(3000, "deleted"), `,"`, ",\n  \"")+",", exportedFrom(3001, "unconfirmed"), "]")
	notifications := write("notification.json", `{"_id":{"$oid":"5f1d7b2e9c8a4b0012349001"},"serviceName":"myService","channel":"email","isBroadcast":true,"state":"sent","message":{"subject":"s"},"own":1,"created":{"$date":"2021-01-01T00:00:00Z"}}`)
	tokens := write("access_tokens.json", `{"_id":"`+strings.Repeat("aB3", 21)+`z","userId":"5f1d7b2e9c8a4b0012349002","name":"robot","created":{"$date":"2021-01-01T00:00:00Z"}}`)
	configurations := write("configuration.json",
		`{"_id":{"$oid":"5f1d7b2e9c8a4b0012349003"},"name":"rsa","value":{"private":"x"}}`,
		`{"_id":{"$oid":"5f1d7b2e9c8a4b0012349004"},"name":"subscription","serviceName":"myService","value":{"confirmationAcknowledgements":{"successMessage":"Welcome"}}}`)
	all := []string{"import", "notifybc", "--url", api, subscriptions, "subscription=" + array, notifications, tokens, configurations}
	first := s.run("", all...)
	if first.code != 0 || !strings.HasPrefix(first.out, "2,505 stored, 0 unchanged, 1 skipped, 0 failed, in ") || !strings.Contains(first.err, configurations+":1: skipped: ") {
		t.Fatalf("the import ends with %d:\n%s%s", first.code, first.out, first.err)
	}
	if got := list("/subscriptions"); len(got) != 2502 {
		t.Errorf("there are %d subscriptions", len(got))
	}
	for n, state := range map[int]string{0: "confirmed", 2499: "confirmed", 3000: "deleted", 3001: "unconfirmed"} {
		id := fmt.Sprintf("5f1d7b2e9c8a4b001234%04d", n)
		got := list(`/subscriptions?filter={"where":{"id":"` + id + `"}}`)
		if len(got) != 1 || got[0]["state"] != state || got[0]["userChannelId"] != fmt.Sprintf("reader%d@example.org", n) || got[0]["own"] != float64(n) || got[0]["unsubscriptionCode"] != fmt.Sprintf("%05d", n) ||
			got[0]["serviceName"] != "myService" || got[0]["created"] != "2021-05-06T07:08:09.123Z" || got[0]["broadcastPushNotificationFilter"] != "contains_ci(title,'storm')" {
			t.Errorf("subscription %d is %v", n, got)
		}
	}
	if got := list("/notifications"); len(got) != 1 || got[0]["id"] != "5f1d7b2e9c8a4b0012349001" || got[0]["state"] != "sent" {
		t.Errorf("the notifications are %v", got)
	}

	// A second import changes nothing, also where a record has changed since.
	again := s.run("", append(all, "--json")...)
	var sum struct {
		Stored, Unchanged, Skipped, Failed int
		Documents                          []struct {
			File, Message string
			Line          int
			Skipped       bool
		}
	}
	if err := json.Unmarshal([]byte(again.out), &sum); err != nil || again.code != 0 || sum.Stored != 0 || sum.Unchanged != 2505 || sum.Skipped != 1 || sum.Failed != 0 || len(sum.Documents) != 1 || !sum.Documents[0].Skipped {
		t.Errorf("the second import ends with %d: %v\n%s%s", again.code, err, again.out, again.err)
	}

	// Wrong documents are named by their lines, and the others are stored.
	wrong := write("subscription.json", exportedFrom(4000, "confirmed"), `{"_id":{"$oid":"5f1d7b2e9c8a4b0012344001"},"channel":"email"}`, `{"_id":`, "", exportedFrom(4002, "confirmed"),
		strings.Replace(exportedFrom(4003, "confirmed"), "contains_ci(title,'storm')", "contains_ci(", 1))
	partly := s.run("", "import", "notifybc", "--url", api, "--json", wrong)
	if err := json.Unmarshal([]byte(partly.out), &sum); err != nil || partly.code != 2 || sum.Stored != 2 || sum.Failed != 3 || len(sum.Documents) != 3 {
		t.Fatalf("the import of wrong documents ends with %d: %v\n%s%s", partly.code, err, partly.out, partly.err)
	}
	for i, line := range []int{2, 3, 6} {
		if d := sum.Documents[i]; d.File != wrong || d.Line != line || d.Message == "" || !strings.Contains(partly.err, fmt.Sprintf("%s:%d: %s", wrong, line, d.Message)) {
			t.Errorf("document %d is %+v, want line %d\n%s", i, d, line, partly.err)
		}
	}
	if got := list(`/subscriptions?filter={"where":{"id":{"$in":["5f1d7b2e9c8a4b0012344000","5f1d7b2e9c8a4b0012344002"]}}}`); len(got) != 2 {
		t.Errorf("beside wrong documents, %d subscriptions were stored", len(got))
	}

	for _, c := range []struct {
		code int
		want string
		args []string
	}{
		{1, "is not a collection of NotifyBC", []string{write("people.json", "{}")}},
		{1, "no such file", []string{filepath.Join(dir, "bounce.json")}},
		{1, "cannot be reached", []string{"--url", "http://127.0.0.1:1/api", subscriptions}},
		{1, "is not an http or https address", []string{"--url", "127.0.0.1", subscriptions}},
	} {
		if r := s.run("", append([]string{"import", "notifybc", "--url", api}, c.args...)...); r.code != c.code || !strings.Contains(r.err, c.want) {
			t.Errorf("%v ends with %d, want %d: %s", c.args, r.code, c.code, r.err)
		}
	}
}
