package e2e

import (
	"encoding/csv"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/sink"
)

const csvType = "text/csv"

// A listSend is a send as the API shows it.
type listSend struct {
	ID, State, Reason, Digest, Template string
	Authors                             []string
	CannotApprove                       string `json:"cannot_approve"`
	ApprovedBy                          string `json:"approved_by"`
	Recipients, Refused                 *struct {
		Address                          string
		Columns                          []string
		Rows, Valid, Invalid, Suppressed int
	}
	Progress *struct {
		Recipients, Started, Settled, Refused, Broadcasts int
		Deliveries                                        fanfare.Counts
	}
}

type listErrors struct {
	Errors []struct {
		Row                  int
		Column, Detail, Hint string
	}
	Next string
}

const invitations = `service: news
templates:
  invitation:
    subject: "Hello {{ sub.name }}"
    text: "{{ sub.name }} of {{ sub.city }}, {{ event.what }}{{ sub.more | default: '.' }}"
`

// party is a newsroom with a template for lists, keys of two writers and of an approver, and a draft of the first writer.
func party(t *testing.T, config sink.Config, settings string) (s *server, r *relay, writer, approver *caller, id string) {
	t.Helper()
	s, r = newsroom(t, config, settings)
	s.http.must(200, "POST", "/v1/apply", yaml, invitations)
	writer, approver = s.keyFor("writer", "ada@example.org", "publish"), s.keyFor("approver", "grace@example.org", "approve")
	return s, r, writer, approver, writer.draft(`{"name":"Party","channel":"email","template":"invitation","data":{"what":"come"}}`).ID
}

// keyFor returns a caller with a new key of the service.
func (s *server) keyFor(name, owner string, scopes ...string) *caller {
	s.t.Helper()
	body := fmt.Sprintf(`{"service":"news","name":%q,"owner":%q,"scopes":["%s"]}`, name, owner, strings.Join(scopes, `","`))
	return s.http.with(into[struct{ Key string }](s.t, s.http.must(201, "POST", "/v1/keys", plain, body)).Key)
}

func (c *caller) draft(body string) listSend {
	c.t.Helper()
	return into[listSend](c.t, c.must(201, "POST", "/v1/sends", plain, body))
}

func (c *caller) listSend(id string) listSend {
	c.t.Helper()
	return into[listSend](c.t, c.must(200, "GET", "/v1/sends/"+id, "", ""))
}

func (c *caller) upload(id, body string) listSend {
	c.t.Helper()
	return into[struct{ Send listSend }](c.t, c.must(200, "PUT", "/v1/sends/"+id+"/recipients", csvType, body)).Send
}

// do submits, approves, pauses, resumes or cancels a send.
func (c *caller) do(id, action, body string) listSend {
	c.t.Helper()
	return into[listSend](c.t, c.must(200, "POST", "/v1/sends/"+id+"/"+action, plain, body))
}

// inAYear is a time that no test reaches.
func inAYear() string { return time.Now().AddDate(1, 0, 0).UTC().Format(time.RFC3339) }

func digestOf(s listSend) string { return fmt.Sprintf(`{"digest":%q}`, s.Digest) }

// sendEnded waits until a send has ended.
func (c *caller) sendEnded(id string) (is listSend) {
	c.t.Helper()
	eventuallyWith(c.t, "the end of send "+id, func() bool {
		is = c.listSend(id)
		return is.State == "completed" || is.State == "cancelled"
	}, func() string { return fmt.Sprintf("%+v %+v", is, is.Progress) })
	return is
}

// report returns the report of a send by address, without the header.
func (c *caller) report(id string) map[string][]string {
	c.t.Helper()
	rows, err := csv.NewReader(strings.NewReader(c.must(200, "GET", "/v1/sends/"+id+"/report", "", ""))).ReadAll()
	if err != nil || strings.Join(rows[0], ",") != "row,address,state,reason,time,delivery" {
		c.t.Fatalf("the report: %v, %v", err, rows)
	}
	byAddress := map[string][]string{}
	for _, row := range rows[1:] {
		byAddress[row[1]] = row
	}
	if len(byAddress) != len(rows)-1 {
		c.t.Errorf("the report has %d rows for %d addresses", len(rows)-1, len(byAddress))
	}
	return byAddress
}

func TestASendGoesFromAListToItsRecipients(t *testing.T) {
	t.Parallel()
	s, r, writer, approver, id := party(t, sink.Config{Hosts: []sink.HostRule{{Host: "gone.example.org", Refuse: true}}}, "")
	s.http.must(200, "POST", "/v1/suppressions", plain, `{"address":"quiet@example.org","reason":"manual"}`)
	s.http.must(201, "PUT", "/v1/subscribers/reader-7", plain, `{"addresses":[{"kind":"mail","address":"seven@example.org"}]}`)
	list := "subscriber;to;name;city;more\r\n;ada@example.org;=Ada;London;\"; and\r\nbring cake\"\r\nreader-7;;Seven;Rome;\r\n;quiet@example.org;Quiet;Oslo;!\r\n\r\n;x@gone.example.org;X;Paris;?\r\n"
	up := writer.upload(id, list)
	if l := up.Recipients; up.State != "draft" || l == nil || l.Rows != 4 || l.Valid != 4 || l.Invalid != 0 || l.Suppressed != 1 || l.Address != "to" || strings.Join(l.Columns, ",") != "name,city,more" {
		t.Errorf("the upload is %+v, %+v", up, up.Recipients)
	}
	rows := into[struct {
		Rows []struct {
			Row            int
			To, Subscriber string
			Suppressed     string
			Data           map[string]string
		}
	}](t, writer.must(200, "GET", "/v1/sends/"+id+"/recipients", "", "")).Rows
	if len(rows) != 4 || rows[0].Row != 2 || rows[0].Data["more"] != "; and\nbring cake" || rows[1].Subscriber != "reader-7" || rows[2].Suppressed != "manual" || rows[3].Row != 6 {
		t.Errorf("the rows are %+v", rows)
	}
	preview := into[struct{ To, Subject, Text, Template string }](t, approver.must(200, "GET", "/v1/sends/"+id+"/recipients/2/preview", "", ""))
	if preview.To != "ada@example.org" || preview.Subject != "Hello =Ada" || preview.Text != "=Ada of London, come; and\nbring cake" || preview.Template != "invitation@1" {
		t.Errorf("the preview is %+v", preview)
	}
	writer.must(404, "GET", "/v1/sends/"+id+"/recipients/5/preview", "", "")

	approver.must(409, "POST", "/v1/sends/"+id+"/approve", plain, `{"digest":"x"}`)
	submitted := writer.do(id, "submit", "")
	if submitted.State != "submitted" || submitted.Template != "invitation@1" || submitted.Digest == "" {
		t.Fatalf("submitted: %+v", submitted)
	}
	s.http.must(200, "POST", "/v1/apply", yaml, strings.Replace(invitations, "Hello", "Goodbye", 1)) // the version is fixed
	approver.must(409, "POST", "/v1/sends/"+id+"/approve", plain, `{"digest":"sha256:0"}`)
	approver.must(422, "POST", "/v1/sends/"+id+"/approve", plain, `{}`)
	if got := approver.do(id, "approve", digestOf(submitted)); got.ApprovedBy == "" {
		t.Errorf("approved: %+v", got)
	}
	is := writer.sendEnded(id)
	if p := is.Progress; is.State != "completed" || p == nil || p.Recipients != 4 || p.Started != 4 || p.Settled != 4 || p.Deliveries[fanfare.Accepted] != 2 || p.Deliveries[fanfare.Suppressed] != 1 || p.Deliveries[fanfare.Failed] != 1 {
		t.Errorf("the end is %+v, %+v", is, is.Progress)
	}
	if mail := r.one("ada@example.org"); field(mail, "Subject") != "Hello =Ada" || !strings.Contains(mail, "bring cake") {
		t.Errorf("the mail is %s", mail)
	}
	if wrong := r.wrong("ada@example.org", "seven@example.org"); wrong != "" {
		t.Error(wrong)
	}
	report := approver.report(id)
	for address, want := range map[string]string{"ada@example.org": "2 accepted", "seven@example.org": "3 accepted", "quiet@example.org": "4 suppressed", "x@gone.example.org": "6 failed"} {
		row := report[address]
		if len(row) != 6 || row[0]+" "+row[2] != want || !strings.HasPrefix(row[5], "dlv-") || row[2] != "suppressed" && row[4] == "" {
			t.Errorf("%s: the report has %q, want %s", address, row, want)
		}
	}
	if found := into[struct{ Messages []message }](t, s.http.must(200, "GET", "/v1/messages?reference="+id, "", "")).Messages; len(found) != 1 || found[0].Recipients != 4 {
		t.Errorf("the messages with the reference are %+v", found)
	}
	var actions []string
	for _, e := range into[struct {
		Audit []struct{ Action, Name string }
	}](t, s.http.must(200, "GET", "/v1/audit?kind=send", "", "")).Audit {
		actions = append(actions, e.Action)
	}
	slices.Reverse(actions)
	if got := strings.Join(actions, " "); got != "create upload submit approve" {
		t.Errorf("the audit log has %s", got)
	}
	writer.must(409, "POST", "/v1/sends/"+id+"/cancel", plain, "{}")
	writer.must(409, "PATCH", "/v1/sends/"+id, plain, `{"name":"other"}`)
	writer.must(204, "DELETE", "/v1/sends/"+id, "", "")
	writer.must(404, "GET", "/v1/sends/"+id, "", "")
}

func TestAListWithErrorsReplacesNothing(t *testing.T) {
	t.Parallel()
	_, r, writer, approver, id := party(t, sink.Config{}, "")
	writer.upload(id, "to,name,city\nold@example.org,Old,Rome\n")
	path := "/v1/sends/" + id + "/recipients"
	bad := "to,name,city\nada@example.org,Ada,London\nnobody,Bob,Rome\n,Eve,Oslo\nADA@example.org,Ada,Paris\nx@example.org,,\ny@example.org,Y,Berlin,more\nz@example.org,Z,\n"
	got := writer.refused(422, "PUT", path, csvType, bad)
	var found []string
	for _, e := range got.Errors {
		found = append(found, fmt.Sprintf("%d%s", e.Line, e.Pointer))
	}
	if got.Detail != "6 of 7 rows are invalid; nothing was stored" || strings.Join(found, " ") != "3/to 4/to 5/to 6 7 8/city" {
		t.Errorf("refused with %+v: %v", got, found)
	}
	for i, want := range []string{"is not an email address", "the cell is empty", "the same recipient is in row 2", `the cells "name", "city" are empty`, "the row has 4 cells", "the template needs its value"} {
		if !strings.Contains(got.Errors[i].Detail, want) {
			t.Errorf("error %d is %q, want %q", i, got.Errors[i].Detail, want)
		}
	}
	is := writer.listSend(id)
	if is.Recipients.Rows != 1 || is.Refused == nil || is.Refused.Rows != 7 || is.Refused.Invalid != 6 {
		t.Errorf("then the send is %+v: %+v, refused %+v", is, is.Recipients, is.Refused)
	}
	if list := into[listErrors](t, writer.must(200, "GET", "/v1/sends/"+id+"/errors", "", "")); len(list.Errors) != 6 || list.Errors[5].Row != 8 || list.Errors[5].Column != "city" || list.Next != "" {
		t.Errorf("the errors are %+v", list)
	}
	// A missing column is one error, however many rows lack it, and so is a value that all lack.
	many := "to,name,City\n"
	for i := range 3000 {
		many += fmt.Sprintf("p%d@example.org,P,Rome\n", i)
	}
	if got := writer.refused(422, "PUT", path, csvType, many); got.Detail != `the template needs sub.city, but the list has no column "city"` || got.Hint != `rename the column "City" to "city"` || len(got.Errors) != 0 {
		t.Errorf("without the column: %+v", got)
	}
	empty := writer.draft(`{"channel":"email","template":"invitation"}`).ID
	if got := writer.refused(422, "PUT", "/v1/sends/"+empty+"/recipients", csvType, "to,name,city\na@example.org,A,B\n"); got.Pointer != "/data" || !strings.Contains(got.Detail, "event.what") {
		t.Errorf("without the data: %+v", got)
	}
	// 250 errors come in pages.
	wrong := "to,name,city\n"
	for i := range 250 {
		wrong += fmt.Sprintf("nobody%d,P,Rome\n", i)
	}
	if got := writer.refused(422, "PUT", path, csvType, wrong); len(got.Errors) != 100 {
		t.Errorf("the answer has %d errors", len(got.Errors))
	}
	total, query := 0, url.Values{}
	for {
		page := into[listErrors](t, writer.must(200, "GET", "/v1/sends/"+id+"/errors?"+query.Encode(), "", ""))
		for _, e := range page.Errors {
			if total++; e.Row != total+1 {
				t.Fatalf("error %d is of row %d", total, e.Row)
			}
		}
		if page.Next == "" {
			break
		}
		query.Set("cursor", page.Next)
	}
	if total != 250 {
		t.Errorf("there are %d errors", total)
	}
	// With skip_invalid the other rows are sent, and the report has all.
	writer.must(200, "PATCH", "/v1/sends/"+id, plain, `{"skip_invalid":true}`)
	if up := writer.upload(id, bad); up.Recipients.Valid != 1 || up.Recipients.Invalid != 6 || up.Refused != nil {
		t.Errorf("with skip_invalid: %+v", up.Recipients)
	}
	writer.must(409, "GET", "/v1/sends/"+id+"/recipients/3/preview", "", "")
	submitted := writer.do(id, "submit", "")
	approver.do(id, "approve", digestOf(submitted))
	writer.sendEnded(id)
	if wrong := r.wrong("ada@example.org"); wrong != "" {
		t.Error(wrong)
	}
	report := writer.report(id)
	if len(report) != 7 || report["ada@example.org"][2] != "accepted" || report["nobody"][2] != "invalid" || report["z@example.org"][2] != "invalid" {
		t.Errorf("the report has %v", report)
	}
}

func TestAnAuthorCannotApprove(t *testing.T) {
	t.Parallel()
	s, _, writer, approver, id := party(t, sink.Config{}, "")
	writer.upload(id, "to,name,city\na@example.org,A,B\n")
	// refuses checks that somebody cannot approve the send as it is.
	refuses := func(who string, c *caller) {
		t.Helper()
		is := c.listSend(id)
		if is.CannotApprove == "" {
			t.Errorf("%s: the send does not say that they cannot approve it", who)
		}
		if got := c.refused(403, "POST", "/v1/sends/"+id+"/approve", plain, digestOf(is)); got.Code != "forbidden" {
			t.Errorf("%s: %+v", who, got)
		}
	}
	writer.do(id, "submit", "")
	refuses("without the scope", writer)
	refuses("the same owner with another key", s.keyFor("second key of the writer", "Ada@Example.org", "approve"))
	if is := approver.listSend(id); is.CannotApprove != "" {
		t.Errorf("another person cannot approve it: %s", is.CannotApprove)
	}
}

func TestAChangeEndsAnApproval(t *testing.T) {
	t.Parallel()
	s, r, writer, approver, id := party(t, sink.Config{}, "")
	later := `{"send_at":"` + inAYear() + `"}`
	writer.must(200, "PATCH", "/v1/sends/"+id, plain, later)
	writer.upload(id, "to,name,city\na@example.org,A,B\n")
	first := writer.do(id, "submit", "")
	if got := approver.do(id, "approve", digestOf(first)); got.State != "scheduled" {
		t.Fatalf("approved: %+v", got)
	}
	both := s.keyFor("colleague", "", "approve", "publish")
	for _, change := range []func(){
		func() { both.must(200, "PATCH", "/v1/sends/"+id, plain, `{"data":{"what":"stay"}}`) },
		func() { both.upload(id, "to,name,city\nb@example.org,A,B\n") },
		func() { both.must(200, "PATCH", "/v1/sends/"+id, plain, `{"send_at":null}`) },
	} {
		change()
		is := writer.listSend(id)
		if is.State != "draft" || is.Digest != "" || is.ApprovedBy != "" || len(is.Authors) != 2 {
			t.Errorf("after a change: %+v", is)
		}
		again := both.do(id, "submit", "")
		if again.Digest == first.Digest || again.Digest == "" {
			t.Errorf("the digest is %s again", again.Digest)
		}
		both.must(403, "POST", "/v1/sends/"+id+"/approve", plain, digestOf(again)) // an author now
		approver.must(409, "POST", "/v1/sends/"+id+"/approve", plain, digestOf(first))
	}
	if r.total() != 0 {
		t.Errorf("%d mails without an approval", r.total())
	}
	approver.do(id, "approve", digestOf(writer.listSend(id)))
	writer.sendEnded(id)
	if wrong := r.wrong("b@example.org"); wrong != "" {
		t.Error(wrong)
	}
	// The setting lets a service send without approval, unless the send is larger than what the service holds.
	s.http.must(200, "POST", "/v1/apply", yaml, "service: news\nsend_approval: none\nhold_above: 2\n")
	small, large := writer.draft(`{"channel":"email","template":"invitation","data":{"what":"x"}}`).ID, writer.draft(`{"channel":"email","template":"invitation","data":{"what":"x"}}`).ID
	writer.upload(small, "to,name,city\nc@example.org,A,B\nd@example.org,A,B\n")
	writer.upload(large, "to,name,city\ne@example.org,A,B\nf@example.org,A,B\ng@example.org,A,B\n")
	writer.do(small, "submit", "")
	writer.sendEnded(small)
	if got := writer.do(large, "submit", ""); got.State != "submitted" {
		t.Errorf("a large one is %+v", got)
	}
	approver.do(large, "approve", digestOf(writer.listSend(large)))
	writer.sendEnded(large)
	if wrong := r.wrong("b@example.org", "c@example.org", "d@example.org", "e@example.org", "f@example.org", "g@example.org"); wrong != "" {
		t.Error(wrong)
	}
	// A key cannot change its own owner.
	admin := s.keyFor("admin", "eve@example.org", "admin")
	var own string
	for _, k := range into[struct {
		Keys []struct{ ID, Name, Owner string }
	}](t, admin.must(200, "GET", "/v1/keys", "", "")).Keys {
		if k.Name == "admin" && k.Owner == "eve@example.org" {
			own = k.ID
		}
	}
	if got := admin.refused(403, "PATCH", "/v1/keys/"+own, plain, `{"owner":"mallory@example.org"}`); got.Pointer != "/owner" {
		t.Errorf("its own owner: %+v", got)
	}
	s.http.must(200, "PATCH", "/v1/keys/"+own, plain, `{"owner":"trudy@example.org"}`)
}

// longList returns a list with long rows, so that it has many parts, and its people.
func longList(n int) (list string, people []string) {
	var b strings.Builder
	b.WriteString("to,name,city,more\n")
	long := strings.Repeat("word ", 60)
	for i := range n {
		people = append(people, fmt.Sprintf("p%d@example.org", i))
		fmt.Fprintf(&b, "p%d@example.org,Name %d,City,%s\n", i, i, long)
	}
	return b.String(), people
}

func TestASendIsPausedResumedAndCancelled(t *testing.T) {
	t.Parallel()
	_, r, writer, approver, id := party(t, sink.Config{}, "rate: unlimited, connections: 2")
	list, people := longList(5000)
	letGo := r.hold(100)
	writer.upload(id, list)
	approver.do(id, "approve", digestOf(writer.do(id, "submit", "")))
	eventually(t, "some mails", func() bool { return r.total() > 100 })
	if got := writer.do(id, "pause", `{"reason":"a mistake?"}`); got.State != "paused" || got.Reason != "a mistake?" {
		t.Errorf("paused: %+v", got)
	}
	letGo()
	paused := writer.listSend(id)
	if paused.Progress.Started == len(people) || paused.Progress.Broadcasts > 4 {
		t.Errorf("while it is paused, it has begun %+v", paused.Progress)
	}
	if got := writer.do(id, "resume", ""); got.State != "sending" {
		t.Errorf("resumed: %+v", got)
	}
	eventually(t, "further parts", func() bool { return writer.listSend(id).Progress.Started > paused.Progress.Started })
	if got := approver.do(id, "cancel", `{"reason":"it was one"}`); got.State != "cancelled" {
		t.Errorf("cancelled: %+v", got)
	}
	is := writer.sendEnded(id)
	eventually(t, "the end of its broadcasts", func() bool {
		is = writer.listSend(id)
		return is.Progress.Settled == is.Progress.Started
	})
	states := map[string]int{}
	for _, row := range writer.report(id) {
		states[row[2]]++
	}
	if states["accepted"] != r.total() || states["accepted"]+states["cancelled"] != len(people) || states["cancelled"] == 0 {
		t.Errorf("the report has %v, and %d mails arrived", states, r.total())
	}
}

// Several kills during a send lose no row, and repeat at most one message for each open connection and kill.
func TestASendSurvivesKills(t *testing.T) {
	t.Parallel()
	const rows, kills, connections = 12000, 5, 2
	s, r, writer, approver, id := party(t, sink.Config{}, fmt.Sprintf("rate: unlimited, connections: %d", connections))
	list, people := longList(rows)
	writer.upload(id, list)
	approver.do(id, "approve", digestOf(writer.do(id, "submit", "")))
	for i := range kills {
		eventually(t, "further mails", func() bool { return r.total() > rows*(i+1)/(kills+2) })
		s.kill()
		s.start()
		writer.url, approver.url = s.url, s.url
	}
	is := writer.sendEnded(id)
	if p := is.Progress; p.Started != rows || p.Settled != rows || p.Deliveries[fanfare.Accepted] != rows {
		t.Errorf("the progress is %+v", p)
	}
	twice := 0
	for _, person := range people {
		switch n := len(r.of(person)); {
		case n == 0:
			t.Errorf("%s got nothing", person)
		case n > 1:
			twice += n - 1
		}
	}
	if twice > kills*connections {
		t.Errorf("%d messages arrived twice", twice)
	}
	t.Logf("%d kills, %d messages twice", kills, twice)
	for address, row := range writer.report(id) {
		if row[2] != "accepted" {
			t.Errorf("%s is %q", address, row)
		}
	}
}

func TestAScheduledSendSurvivesARestart(t *testing.T) {
	t.Parallel()
	s, r, writer, approver, id := party(t, sink.Config{}, "")
	writer.must(200, "PATCH", "/v1/sends/"+id, plain, `{"send_at":"`+inAYear()+`"}`)
	writer.upload(id, "to,name,city\na@example.org,A,B\n")
	submitted := writer.do(id, "submit", "")
	s.mustStop()
	s.start()
	writer.url, approver.url = s.url, s.url
	if got := approver.do(id, "approve", digestOf(submitted)); got.State != "scheduled" {
		t.Errorf("approved after a restart: %+v", got)
	}
	s.mustStop()
	s.start()
	writer.url = s.url
	if is := writer.listSend(id); is.State != "scheduled" || is.Recipients.Valid != 1 || r.total() != 0 {
		t.Errorf("after another one: %+v", is)
	}
	if list := into[struct{ Sends []listSend }](t, writer.must(200, "GET", "/v1/sends?state=scheduled", "", "")).Sends; len(list) != 1 || list[0].ID != id {
		t.Errorf("the scheduled ones are %+v", list)
	}
	if list := into[struct{ Sends []listSend }](t, writer.must(200, "GET", "/v1/sends?state=draft", "", "")).Sends; len(list) != 0 {
		t.Errorf("the drafts are %+v", list)
	}
	writer.do(id, "cancel", "")
	if row := writer.report(id)["a@example.org"]; row[2] != "cancelled" {
		t.Errorf("the report has %q", row)
	}
}

// The rows of an erased person go from lists and their errors, also from those that were not sent yet.
func TestErasedPersonIsInNoList(t *testing.T) {
	t.Parallel()
	s, r, writer, approver, id := party(t, sink.Config{}, "")
	s.http.must(201, "PUT", "/v1/subscribers/own-qzxlist", plain, `{"addresses":[{"kind":"mail","address":"Qzxlist@example.org"}]}`)
	writer.must(200, "PATCH", "/v1/sends/"+id, plain, `{"send_at":"`+inAYear()+`","skip_invalid":true}`)
	writer.upload(id, "to,name,city\na@example.org,A,B\nQzxlist@example.org,Qzxlist of the list,B\nqzxlist@example.org,again,B\n")
	export := s.http.must(200, "GET", "/v1/subscribers/own-qzxlist/export", "", "")
	if !strings.Contains(export, `"type":"send"`) || !strings.Contains(export, id) || !strings.Contains(export, "Qzxlist of the list") {
		t.Errorf("the export is %s", export)
	}
	approver.do(id, "approve", digestOf(writer.do(id, "submit", "")))
	s.http.must(200, "POST", "/v1/subscribers/own-qzxlist/erase", plain, `{}`)
	if files := s.foundIn("qzxlist"); len(files) > 0 {
		t.Errorf("who is erased is in %v", files)
	}
	rows := into[struct {
		Rows []struct {
			To     string
			Erased bool
		}
	}](t, writer.must(200, "GET", "/v1/sends/"+id+"/recipients", "", "")).Rows
	if len(rows) != 3 || rows[0].To != "a@example.org" || !rows[1].Erased || !rows[2].Erased {
		t.Errorf("the rows are %+v", rows)
	}
	writer.must(200, "PATCH", "/v1/sends/"+id, plain, `{"send_at":null}`)
	approver.do(id, "approve", digestOf(writer.do(id, "submit", "")))
	writer.sendEnded(id)
	if wrong := r.wrong("a@example.org"); wrong != "" {
		t.Error(wrong)
	}
}
