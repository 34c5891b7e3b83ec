package server_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"
)

func TestNotifyRequestErrors(t *testing.T) {
	s, _ := startNotify(t, "")
	_, c := s.notifyKey("live")
	const email, sms = "/v2/notifications/email", "/v2/notifications/sms"
	mail := func(more string) string {
		return fmt.Sprintf(`{"email_address":"b@example.org","template_id":%q,"personalisation":{"name":"B","topics":[],"member":"no"}%s}`, notifyTemplate, more)
	}
	text := func(number, more string) string {
		return fmt.Sprintf(`{"phone_number":%q,"template_id":%q,"personalisation":{"code":1}%s}`, number, notifyText, more)
	}
	for _, one := range []struct {
		path, body string
		entries    []string
	}{
		{email, `{`, []string{"BadRequestError: Invalid JSON supplied in POST data"}},
		{email, ``, []string{"BadRequestError: Invalid JSON supplied in POST data"}},
		{email, `{} {}`, []string{"BadRequestError: Invalid JSON supplied in POST data"}},
		{email, `[1]`, []string{"ValidationError: [1] is not of type object"}},
		{email, `{}`, []string{"ValidationError: email_address is a required property", "ValidationError: template_id is a required property"}},
		{sms, `{}`, []string{"ValidationError: phone_number is a required property", "ValidationError: template_id is a required property"}},
		{email, mail(`,"colour":"red"`), []string{"ValidationError: Additional properties are not allowed (colour was unexpected)"}},
		{email, mail(`,"a":1,"it's":2`), []string{"ValidationError: Additional properties are not allowed (a, its were unexpected)"}},
		{email, mail(`,"sms_sender_id":"` + notifySender + `"`), []string{"ValidationError: Additional properties are not allowed (sms_sender_id was unexpected)"}},
		{email, `{"email_address":"x","template_id":"y","personalisation":"z","reference":7}`, []string{"ValidationError: email_address Not a valid email address", "ValidationError: template_id is not a valid UUID",
			"ValidationError: personalisation z is not of type object", "ValidationError: reference 7 is not of type string"}},
		{email, mail(`,"reference":"` + strings.Repeat("é", 1001) + `"`), []string{"ValidationError: reference " + strings.Repeat("é", 1000) + "... is too long"}},
		{email, mail(`,"email_reply_to_id":"x"`), []string{"ValidationError: email_reply_to_id is not a valid UUID"}},
		{sms, text("07700900123", `,"sms_sender_id":"x"`), []string{"ValidationError: sms_sender_id is not a valid UUID"}},
		{email, mail(`,"one_click_unsubscribe_url":"http://example.org"`), []string{"ValidationError: one_click_unsubscribe_url is not a valid https url"}},
		{email, mail(`,"one_click_unsubscribe_url":"https://example.org/\r\nBcc: a@example.org"`), []string{"ValidationError: one_click_unsubscribe_url is not a valid https url"}},
		{email, mail(`,"sanitise_content_for":"name"`), []string{"ValidationError: sanitise_content_for name is not of type array, null"}},
		{sms, text("0770090012", ``), []string{"ValidationError: phone_number Not enough digits"}},
		{sms, text("077009001234", ``), []string{"ValidationError: phone_number Too many digits"}},
		{sms, text("020 7946 0123", ``), []string{"ValidationError: phone_number Not a UK mobile number"}},
		{sms, text("07700 9001OO", ``), []string{"ValidationError: phone_number Must not contain letters or symbols"}},
		{sms, text("+21012345678", ``), []string{"ValidationError: phone_number Not a valid country prefix"}},
		{sms, text("+1234567890123456", ``), []string{"ValidationError: phone_number Too many digits"}},
		{email, fmt.Sprintf(`{"email_address":"b@example.org","template_id":%q}`, unknownID), []string{"BadRequestError: Template not found"}},
		{email, fmt.Sprintf(`{"email_address":"b@example.org","template_id":%q}`, notifyText), []string{"BadRequestError: sms template is not suitable for email notification"}},
		{sms, fmt.Sprintf(`{"phone_number":"07700900123","template_id":%q}`, notifyTemplate), []string{"BadRequestError: email template is not suitable for sms notification"}},
		{email, fmt.Sprintf(`{"email_address":"b@example.org","template_id":%q}`, notifyTemplate), []string{"BadRequestError: Missing personalisation: name, topics, member"}},
		{email, fmt.Sprintf(`{"email_address":"b@example.org","template_id":%q,"personalisation":{"NAME":"x","topics":null}}`, notifyTemplate), []string{"BadRequestError: Missing personalisation: topics, member"}},
		{sms, fmt.Sprintf(`{"phone_number":"07700900123","template_id":%q,"personalisation":{"code":%q}}`, notifyText, strings.Repeat("a", 907)), []string{"BadRequestError: Your message is too long. Text messages cannot be longer than 918 characters. Your message is 920 characters long."}},
		{email, mail(`,"email_reply_to_id":"` + unknownID + `"`), []string{"BadRequestError: email_reply_to_id " + unknownID + " does not exist in database for service id " + notifyService}},
		{sms, text("07700900123", `,"sms_sender_id":"`+unknownID+`"`), []string{"BadRequestError: sms_sender_id " + unknownID + " does not exist in database for service id " + notifyService}},
		{sms, fmt.Sprintf(`{"phone_number":"07700900123","template_id":%q,"personalisation":{"code":{"file":"YQ=="}}}`, notifyText), []string{"BadRequestError: Can only send a file by email"}},
		{email, fmt.Sprintf(`{"email_address":"b@example.org","template_id":%q,"personalisation":{"name":{"file":"YQ==","filename":null},"topics":[],"member":1}}`, notifyTemplate), []string{"BadRequestError: Send files by email has not been set up - add contact details for your service"}},
		{"/v2/notifications/letter", fmt.Sprintf(`{"template_id":%q,"personalisation":{"address_line_1":"a"}}`, notifyTemplate), []string{"BadRequestError: Service is not allowed to send letters"}},
		{"/v2/notifications/letter", `{"reference":"r","content":"YQ==","postage":"first"}`, []string{"BadRequestError: Service is not allowed to send letters"}},
		{"/v2/notifications/letter", `{}`, []string{"ValidationError: template_id is a required property", "ValidationError: personalisation is a required property"}},
		{"/v2/template/" + notifyTemplate + "/preview", `{"personalisation":{"name":"x"}}`, []string{"BadRequestError: Missing personalisation: topics, member"}},
		{"/v2/template/" + notifyTemplate + "/preview", ``, []string{"BadRequestError: Missing personalisation: name, topics, member"}},
		{"/v2/template/x/preview", `{"personalisation":7}`, []string{"ValidationError: id is not a valid UUID", "ValidationError: personalisation 7 is not of type object"}},
	} {
		c.refused(400, "POST", one.path, one.body, one.entries...)
	}
	for _, one := range []struct {
		status  int
		path    string
		entries []string
	}{
		{400, "/v2/notifications/x", []string{"ValidationError: notification_id is not a valid UUID"}},
		{404, "/v2/notifications/" + unknownID, []string{"NoResultFound: No result found"}},
		{400, "/v2/notifications/x/pdf", []string{"ValidationError: notification_id is not a valid UUID"}},
		{404, "/v2/notifications/" + unknownID + "/pdf", []string{"NoResultFound: No result found"}},
		{400, "/v2/template/x", []string{"ValidationError: id is not a valid UUID"}},
		{404, "/v2/template/" + unknownID, []string{"NoResultFound: No result found"}},
		{404, "/v2/template/" + notifyTemplate + "/version/9", []string{"NoResultFound: No result found"}},
		{400, "/v2/template/" + notifyTemplate + "/version/x", []string{"ValidationError: version x is not of type integer"}},
		{400, "/v2/templates?type=fax", []string{"ValidationError: type fax is not one of [sms, email, letter]"}},
		{400, "/v2/notifications?status=lost&older_than=x&colour=red&template_type=fax", []string{"ValidationError: older_than is not a valid UUID", "ValidationError: status lost is not one of [cancelled, created, sending, sent, delivered, pending, failed, technical-failure, temporary-failure, permanent-failure, pending-virus-check, validation-failed, virus-scan-failed, returned-letter, accepted, received]",
			"ValidationError: template_type fax is not one of [sms, email, letter]", "ValidationError: Additional properties are not allowed (colour was unexpected)"}},
		{400, "/v2/notifications?status=created,sending", []string{"ValidationError: status created,sending is not one of [cancelled, created, sending, sent, delivered, pending, failed, technical-failure, temporary-failure, permanent-failure, pending-virus-check, validation-failed, virus-scan-failed, returned-letter, accepted, received]"}},
		{400, "/v2/received-text-messages?older_than=x", []string{"ValidationError: older_than is not a valid UUID"}},
		{404, "/v2/other", []string{"NoResultFound: The requested URL was not found on the server."}},
		{405, "/v2/notifications/email/", []string{}},
	} {
		if one.status == 405 {
			continue
		}
		c.refused(one.status, "GET", one.path, "", one.entries...)
	}
	if status, answer := c.call("DELETE", "/v2/notifications", ""); status != 405 || !strings.Contains(answer, "status_code") {
		t.Errorf("DELETE: %d %s", status, answer)
	}
	if status, answer := c.call("GET", "/service/"+notifyService+"/template/"+notifyTemplate+"/versions", ""); status != 401 || !strings.Contains(answer, `"result":"error"`) {
		t.Errorf("a route of the administration: %d %s", status, answer)
	}
	for _, method := range []string{"GET", "POST"} {
		if status, answer, _ := c.raw(method, "/_status?simple=1", "", ""); status != 200 || strings.TrimSpace(answer) != `{"status":"ok"}` {
			t.Errorf("_status: %d %s", status, answer)
		}
	}
	if received := fmt.Sprint(c.must(200, "GET", "/v2/received-text-messages", "")); received != "map[links:map[current:"+s.app.NotifyURL()+"/v2/received-text-messages] received_text_messages:[]]" {
		t.Errorf("got %s", received)
	}
	s.must(200, "POST", "/v1/apply", "application/yaml", "service: news\ntemplates: {welcome: {delete: true}}\n")
	c.refused(400, "POST", email, mail(""), "BadRequestError: Template "+notifyTemplate+" has been deleted")
	if got := s.sink.Stats().Unique; got != 0 {
		t.Errorf("%d mails were sent", got)
	}
}

func TestNotifyRefusesLargeBodies(t *testing.T) {
	s, _ := startNotify(t, "")
	_, c := s.notifyKey("live")
	status, answer := c.call("POST", "/v2/notifications/email", `{"email_address":"`+strings.Repeat("a", 17<<20)+`"}`)
	c.isError(413, status, answer, "a large body", "BadRequestError: The request is larger than 16 MiB")
}

func TestNotifyLimitsAreReported(t *testing.T) {
	s, _ := startNotify(t, "  daily: {email: 2, sms: 1}\n  rate: 12/min")
	_, c := s.notifyKey("live")
	_, test := s.notifyKey("test")
	send := func(c *notifyClient, kind string) (int, string, http.Header) {
		body := fmt.Sprintf(`{"email_address":"b@example.org","template_id":%q,"personalisation":{"name":"B","topics":[],"member":"no"}}`, notifyTemplate)
		if kind == "sms" {
			body = fmt.Sprintf(`{"phone_number":"07700900123","template_id":%q,"personalisation":{"code":1}}`, notifyText)
		}
		return c.raw("POST", "/v2/notifications/"+kind, body, "Bearer "+c.token())
	}
	for _, kind := range []string{"email", "email", "sms"} {
		if status, answer, _ := send(c, kind); status != 201 {
			t.Fatalf("%s: %d %s", kind, status, answer)
		}
	}
	status, answer, head := send(c, "email")
	c.isError(429, status, answer, "the third mail", "TooManyRequestsError: Exceeded send limits (email: 2) for today")
	if head.Get("Retry-After") == "" {
		t.Error("Retry-After is missing")
	}
	status, answer, _ = send(c, "sms") // the fifth request of 12/3+1
	c.isError(429, status, answer, "the second text message", "TooManyRequestsError: Exceeded send limits (sms: 1) for today")
	status, answer, head = send(c, "sms")
	c.isError(429, status, answer, "the sixth request", "RateLimitError: Exceeded rate limit for key type LIVE of 12 requests per 60 seconds")
	if head.Get("Retry-After") != "5" {
		t.Errorf("Retry-After is %q", head.Get("Retry-After"))
	}
	for range 3 { // not counted, and with its own rate
		if status, answer, _ := send(test, "email"); status != 201 {
			t.Errorf("with a test key: %d %s", status, answer)
		}
	}
	if status, _ := c.call("GET", "/v2/notifications", ""); status != 200 {
		t.Errorf("a read is limited: %d", status)
	}
	if err := s.app.Stop(); err != nil {
		t.Fatal(err)
	}
	s.open() // the counters of the day are read again
	c.base = s.app.NotifyURL()
	status, answer, _ = send(c, "email")
	c.isError(429, status, answer, "after a restart", "TooManyRequestsError: Exceeded send limits (email: 2) for today")
}

func TestNotifyTeamKeysAndTrialMode(t *testing.T) {
	s, _ := startNotify(t, "  trial: true")
	_, live := s.notifyKey("live")
	_, team := s.notifyKey("team")
	_, test := s.notifyKey("test")
	mail := func(to string) string {
		return fmt.Sprintf(`{"email_address":%q,"template_id":%q,"personalisation":{"name":"B","topics":[],"member":"no"}}`, to, notifyTemplate)
	}
	text := func(to string) string {
		return fmt.Sprintf(`{"phone_number":%q,"template_id":%q,"personalisation":{"code":1}}`, to, notifyText)
	}
	for _, c := range []*notifyClient{live, team} {
		c.must(201, "POST", "/v2/notifications/email", mail("Ada@example.org"))
		c.must(201, "POST", "/v2/notifications/email", mail("guest@example.org"))
		c.must(201, "POST", "/v2/notifications/sms", text("+44 7700 900100"))
		c.must(201, "POST", "/v2/notifications/email", mail("simulate-delivered-2@notifications.service.gov.uk"))
	}
	const trial, onlyTeam = "BadRequestError: Can’t send to this recipient when service is in trial mode", "BadRequestError: Can’t send to this recipient using a team-only API key"
	live.refused(400, "POST", "/v2/notifications/email", mail("b@example.org"), trial)
	live.refused(400, "POST", "/v2/notifications/sms", text("07700900123"), trial)
	team.refused(400, "POST", "/v2/notifications/email", mail("b@example.org"), onlyTeam)
	team.refused(400, "POST", "/v2/notifications/sms", text("07700900123"), onlyTeam)
	test.must(201, "POST", "/v2/notifications/email", mail("b@example.org"))
	letter := fmt.Sprintf(`{"template_id":%q,"personalisation":{}}`, notifyTemplate)
	team.refused(403, "POST", "/v2/notifications/letter", letter, "BadRequestError: Cannot send letters with a team api key")
	live.refused(403, "POST", "/v2/notifications/letter", letter, "BadRequestError: Cannot send letters when service is in trial mode")
	test.refused(400, "POST", "/v2/notifications/letter", letter, "BadRequestError: Service is not allowed to send letters")
}

func TestNotifyTestKeysAndSimulatedAddresses(t *testing.T) {
	s, h := startNotify(t, "")
	_, live := s.notifyKey("live")
	_, test := s.notifyKey("test")
	ids := map[string]string{}
	for to, want := range map[string]string{"temp-fail@simulator.notify": "temporary-failure", "perm-fail@simulator.notify": "permanent-failure", "delivered@simulator.notify": "delivered", "anyone@example.org": "delivered"} {
		sent := test.must(201, "POST", "/v2/notifications/email", fmt.Sprintf(`{"email_address":%q,"template_id":%q,"personalisation":{"name":"B","topics":[],"member":"no"}}`, to, notifyTemplate))
		ids[sent["id"].(string)] = want
	}
	for to, want := range map[string]string{"07700900003": "temporary-failure", "07700900002": "permanent-failure", "07700900001": "delivered", "07700900999": "delivered"} {
		sent := test.must(201, "POST", "/v2/notifications/sms", fmt.Sprintf(`{"phone_number":%q,"template_id":%q,"personalisation":{"code":1}}`, to, notifyText))
		ids[sent["id"].(string)] = want
	}
	for id, want := range ids {
		s.eventually("the status "+want, func() bool {
			got := live.must(200, "GET", "/v2/notifications/"+id, "") // a lookup by id finds those of every key
			if (got["status"] == "delivered" || strings.HasSuffix(got["status"].(string), "failure")) && got["status"] != want {
				t.Fatalf("%v became %v, want %s", got["email_address"], got["status"], want)
			}
			return got["status"] == want && got["completed_at"] != nil && (want == "delivered") == (got["sent_at"] != nil)
		})
	}
	for _, c := range []*notifyClient{live, test} {
		for _, to := range []string{"simulate-delivered@notifications.service.gov.uk", "Simulate-Delivered-3@notifications.service.gov.uk"} {
			sent := c.must(201, "POST", "/v2/notifications/email", fmt.Sprintf(`{"email_address":%q,"template_id":%q,"personalisation":{"name":"B","topics":[],"member":"no"}}`, to, notifyTemplate))
			c.refused(404, "GET", "/v2/notifications/"+sent["id"].(string), "", "NoResultFound: No result found")
		}
		sent := c.must(201, "POST", "/v2/notifications/sms", fmt.Sprintf(`{"phone_number":"07700900111","template_id":%q,"personalisation":{"code":1}}`, notifyText))
		c.refused(404, "GET", "/v2/notifications/"+sent["id"].(string), "", "NoResultFound: No result found")
	}
	if s.sink.Stats().Unique != 0 || len(h.all()) != 0 {
		t.Errorf("%d mails and %d text messages were sent", s.sink.Stats().Unique, len(h.all()))
	}
	if list := test.must(200, "GET", "/v2/notifications", "")["notifications"].([]any); len(list) != 8 {
		t.Errorf("the list has %d notifications", len(list))
	}
	if list := live.must(200, "GET", "/v2/notifications", "")["notifications"].([]any); len(list) != 0 {
		t.Errorf("the list of another key type has %d notifications", len(list))
	}
	if list := test.must(200, "GET", "/v2/notifications?status=failed&template_type=sms", "")["notifications"].([]any); len(list) != 2 {
		t.Errorf("%d failed text messages", len(list))
	}
}

func TestNotifySanitisesValues(t *testing.T) {
	s, _ := startNotify(t, "")
	_, c := s.notifyKey("live")
	sent := c.must(201, "POST", "/v2/notifications/email", fmt.Sprintf(`{"email_address":"b@example.org","template_id":%q,"sanitise_content_for":["NAME","member"],
		"personalisation":{"name":"[x](https://evil.example.org) a.b","topics":["*y*"],"member":"no"}}`, notifyTemplate))
	changed := sent["sanitised_content"].(map[string]any)
	if len(changed) != 1 || changed["name"].(map[string]any)["unsanitised"] != "[x](https://evil.example.org) a.b" || strings.Contains(fmt.Sprint(sent["content"]), "evil") {
		t.Errorf("got %v", sent)
	}
	got := c.must(200, "GET", "/v2/notifications/"+sent["id"].(string), "")
	if got["body"] != sent["content"].(map[string]any)["body"] {
		t.Errorf("the body is %q later", got["body"])
	}
	s.eventually("the mail", func() bool { return s.sink.Stats().Unique == 1 })
	if mail := string(s.sink.Messages()[0].Body); strings.Contains(mail, "evil") {
		t.Errorf("the mail has the link:\n%s", mail)
	}
}

func TestNotifyTemplates(t *testing.T) {
	s, _ := startNotify(t, "")
	_, c := s.notifyKey("team")
	first := c.must(200, "GET", "/v2/template/"+notifyTemplate, "")
	if first["name"] != "Welcome mail" || first["type"] != "email" || first["version"] != 1.0 || first["subject"] != "Hello ((name))" || !strings.HasPrefix(first["body"].(string), "# Welcome ((name))") || first["updated_at"] != nil ||
		fmt.Sprint(first["personalisation"]) != "map[member:map[required:true] name:map[required:true] topics:map[required:true]]" {
		t.Errorf("got %v", first)
	}
	s.must(200, "POST", "/v1/apply", "application/yaml", "service: news\ntemplates:\n  welcome: {title: Welcome, syntax: notify, subject: Hi, markdown: \"Second ((name))\"}\n")
	second := c.must(200, "GET", "/v2/template/"+strings.ToUpper(notifyTemplate), "")
	if second["version"] != 2.0 || second["subject"] != "Hi" || second["created_at"] != first["created_at"] || second["updated_at"] == nil || second["id"] != notifyTemplate {
		t.Errorf("got %v", second)
	}
	if again := c.must(200, "GET", "/v2/template/"+notifyTemplate+"/version/1", ""); fmt.Sprint(again) != fmt.Sprint(first) {
		t.Errorf("version 1 is %v", again)
	}
	names := func(query string) (all []string) {
		for _, one := range c.must(200, "GET", "/v2/templates"+query, "")["templates"].([]any) {
			all = append(all, one.(map[string]any)["name"].(string))
		}
		return all
	}
	if got := fmt.Sprint(names(""), names("?type=sms"), names("?type=letter")); got != "[Welcome code derived] [code] []" {
		t.Errorf("got %s", got)
	}
	var derived string
	for _, one := range c.must(200, "GET", "/v2/templates?type=email", "")["templates"].([]any) {
		if one := one.(map[string]any); one["name"] == "derived" {
			derived = one["id"].(string)
		}
	}
	if got := c.must(200, "GET", "/v2/template/"+derived, ""); got["body"] != "Plain" {
		t.Errorf("the template without an id is %v", got)
	}
	preview := c.must(200, "POST", "/v2/template/"+notifyTemplate+"/preview", `{"personalisation":{"name":"<b>"}}`)
	if preview["body"] != "Second <b>" || preview["subject"] != "Hi" || !strings.Contains(preview["html"].(string), "Second &lt;b&gt;") || preview["type"] != "email" || preview["version"] != 2.0 {
		t.Errorf("got %v", preview)
	}
	if preview := c.must(200, "POST", "/v2/template/"+notifyText+"/preview", `{"personalisation":{"code":12}}`); preview["body"] != "Your code is 12" || preview["html"] != nil || preview["subject"] != nil {
		t.Errorf("got %v", preview)
	}
}

// firstUUID returns the first text in a link that looks like a UUID, as the client for Python searches it.
func firstUUID(link string) string {
	for i := 0; i+36 <= len(link); i++ {
		one := link[i : i+36]
		if strings.Trim(one, "0123456789abcdef-") == "" && one[8] == '-' && one[13] == '-' && one[18] == '-' && one[23] == '-' {
			return one
		}
	}
	return ""
}

func TestNotifyListIsPagedAsClientsPage(t *testing.T) {
	s, _ := startNotify(t, "")
	_, c := s.notifyKey("test")
	_, live := s.notifyKey("live")
	const n = 520
	reference := unknownID // a reference that looks like an id comes after older_than
	var ids []string
	for i := range n {
		sent := c.must(201, "POST", "/v2/notifications/sms", fmt.Sprintf(`{"phone_number":"07700 900 123","template_id":%q,"reference":%q,"personalisation":{"code":%d}}`, notifyText, reference, i))
		ids = append(ids, sent["id"].(string))
	}
	live.must(201, "POST", "/v2/notifications/sms", fmt.Sprintf(`{"phone_number":"07700 900 123","template_id":%q,"reference":%q,"personalisation":{"code":"x"}}`, notifyText, reference))
	s.eventually("all in the list", func() bool {
		list := c.must(200, "GET", "/v2/notifications", "")["notifications"].([]any)
		return len(list) == 250 && list[0].(map[string]any)["id"] == ids[n-1]
	})
	s.eventually("all delivered", func() bool {
		return len(c.must(200, "GET", "/v2/notifications?status=accepted", "")["notifications"].([]any)) == 0
	})
	for _, query := range []string{"", "reference=" + reference, "status=delivered&status=sending&template_type=sms&include_jobs=True"} {
		next, got, pages := "", []string{}, 0
		for {
			path := "/v2/notifications?" + query
			if next != "" {
				path += "&older_than=" + next
			}
			page := c.must(200, "GET", path, "")
			list, links := page["notifications"].([]any), page["links"].(map[string]any)
			if current := links["current"].(string); current != s.app.NotifyURL()+path {
				t.Fatalf("current is %s, want %s", current, path)
			}
			if len(list) == 0 {
				if links["next"] != nil {
					t.Errorf("an empty page has next: %v", links)
				}
				break
			}
			pages++
			for _, one := range list {
				one := one.(map[string]any)
				got = append(got, one["id"].(string))
				if one["body"] == nil || one["phone_number"] != "07700 900 123" {
					t.Fatalf("got %v", one)
				}
			}
			next = firstUUID(links["next"].(string))
		}
		if pages != 3 || len(got) != n {
			t.Fatalf("%q: %d pages with %d notifications", query, pages, len(got))
		}
		for i := range got {
			if got[i] != ids[n-1-i] {
				t.Fatalf("%q: notification %d is another one", query, i)
			}
		}
	}
	for _, query := range []string{"older_than=" + unknownID, "template_type=letter", "template_type=email", "status=cancelled", "reference=other"} {
		if list := c.must(200, "GET", "/v2/notifications?"+query, "")["notifications"].([]any); len(list) != 0 {
			t.Errorf("%s: %d notifications", query, len(list))
		}
	}
	begin := time.Now()
	c.must(200, "GET", "/v2/notifications", "")
	t.Logf("a page took %v", time.Since(begin))
}
