package reply

import (
	"errors"
	"strings"
	"testing"
	"time"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/pipeline/deliver/driver"
)

// verdictOf returns the verdict of a driver for a code.
func verdictOf(name string, code int) driver.Verdict {
	switch {
	case code/100 == 2:
		return driver.Accepted
	case name == "webhook" && (code == 408 || code == 425 || code == 429 || code/100 == 5), name == "smtp" && code/100 == 4, code == 0:
		return driver.Temporary
	}
	return driver.Permanent
}

// TestRepliesAreClassified classifies replies of the RFCs and those that large receivers publish.
func TestRepliesAreClassified(t *testing.T) {
	rules := Builtin()
	for _, c := range []struct {
		driver string
		code   int
		text   string
		class  fanfare.Class
	}{
		{"smtp", 421, "4.7.28 Our system has detected an unusual rate of email originating from your IP address", fanfare.ClassThrottled},
		{"smtp", 421, "4.7.0 Our system has detected an unusual rate of unsolicited mail originating from your IP address.", fanfare.ClassThrottled},
		{"smtp", 450, "4.2.1 The user you are trying to contact is receiving mail too quickly. Please resend your message at a later time.", fanfare.ClassThrottled},
		{"smtp", 450, "4.2.1 The user you are trying to contact is receiving mail at a rate that prevents additional messages", fanfare.ClassThrottled},
		{"smtp", 452, "4.2.2 The email account that you tried to reach is over quota.", fanfare.ClassFull},
		{"smtp", 552, "5.2.2 The email account that you tried to reach is over quota.", fanfare.ClassFull},
		{"smtp", 550, "5.1.1 The email account that you tried to reach does not exist.", fanfare.ClassInvalid},
		{"smtp", 550, "5.2.1 The email account that you tried to reach is disabled.", fanfare.ClassInvalid},
		{"smtp", 550, "5.7.26 This mail is unauthenticated, which poses a security risk to the sender", fanfare.ClassBlocked},
		{"smtp", 552, "5.3.4 Your message exceeded the size limits.", fanfare.ClassContent},
		{"smtp", 421, "4.4.5 Server busy, try again later.", fanfare.ClassNetwork},
		{"smtp", 421, "4.3.0 Temporary System Problem. Try again later", fanfare.ClassBusy},
		{"smtp", 451, "4.7.500 Server busy. Please try again later from [192.0.2.1].", fanfare.ClassThrottled},
		{"smtp", 451, "4.7.650 The mail server [192.0.2.1] has been temporarily rate limited due to IP reputation", fanfare.ClassThrottled},
		{"smtp", 421, "RP-001 Unfortunately, some messages from 192.0.2.1 weren't sent", fanfare.ClassThrottled},
		{"smtp", 550, "5.7.1 Unfortunately, messages from [192.0.2.1] weren't sent. Part of their network is on our block list (S3140).", fanfare.ClassBlocked},
		{"smtp", 550, "SC-001 Unfortunately, messages from 192.0.2.1 weren't sent", fanfare.ClassBlocked},
		{"smtp", 421, "4.7.0 [TSS04] Messages from 192.0.2.1 temporarily deferred due to unexpected volume or user complaints", fanfare.ClassThrottled},
		{"smtp", 451, "Resources temporarily unavailable. Please try again later [#4.16.1].", fanfare.ClassBusy},
		{"smtp", 554, "5.7.1 Service unavailable; Client host [192.0.2.1] blocked using zen.spamhaus.org", fanfare.ClassBlocked},
		{"smtp", 451, "4.7.1 Greylisting in action, please come back in 00:04:59", fanfare.ClassGreylisted},
		{"smtp", 450, "4.2.0 <a@example.org>: Recipient address rejected: Greylisted, see the postmaster", fanfare.ClassGreylisted},
		{"smtp", 450, "4.1.1 unverified address", fanfare.ClassInvalid},
		{"smtp", 421, "Too many concurrent SMTP connections; please try again later.", fanfare.ClassThrottled},
		{"smtp", 452, "4.5.3 Too many recipients", fanfare.ClassThrottled},
		{"smtp", 556, "5.1.10 Recipient address has null MX", fanfare.ClassInvalid},
		{"smtp", 550, "User unknown", fanfare.ClassInvalid},
		{"smtp", 550, "", fanfare.ClassInvalid},
		{"smtp", 554, "Message content rejected: spam", fanfare.ClassContent},
		{"smtp", 421, "", fanfare.ClassBusy},
		{"smtp", 450, "", ""},
		{"smtp", 450, "4.2.0 try again later", ""}, // one mailbox, and not where it is
		{"smtp", 451, "", fanfare.ClassBusy},
		{"smtp", 452, "", fanfare.ClassBusy},
		{"smtp", 535, "5.7.8 Authentication credentials invalid", fanfare.ClassDenied},
		{"smtp", 530, "5.7.0 Must issue a STARTTLS command first", fanfare.ClassDenied},
		{"smtp", 553, "5.1.8 Sender address rejected: Domain not found", fanfare.ClassDenied},
		{"smtp", 501, "5.5.4 Syntax error", fanfare.ClassDenied},
		{"smtp", 554, "5.6.0 Message is not well-formed", fanfare.ClassContent},
		{"smtp", 442, "4.4.2 Bad connection", fanfare.ClassNetwork},
		{"webhook", 429, "Too Many Requests", fanfare.ClassThrottled},
		{"webhook", 503, "Service Unavailable", fanfare.ClassBusy},
		{"webhook", 500, "", fanfare.ClassNetwork},
		{"webhook", 502, "", fanfare.ClassNetwork},
		{"webhook", 504, "", fanfare.ClassNetwork},
		{"webhook", 507, "", fanfare.ClassFull},
		{"webhook", 408, "", fanfare.ClassNetwork},
		{"webhook", 425, "", fanfare.ClassBusy},
		{"webhook", 401, "", fanfare.ClassDenied},
		{"webhook", 404, "", fanfare.ClassInvalid},
		{"webhook", 410, "Gone", fanfare.ClassInvalid},
		{"webhook", 421, "Misdirected Request", fanfare.ClassInvalid},
		{"webhook", 302, "to elsewhere", fanfare.ClassInvalid},
		{"webhook", 422, "", fanfare.ClassContent},
		{"webhook", 0, "connection refused", fanfare.ClassNetwork},
		{"smtp", 250, "2.0.0 OK, 4.2.2 was before", ""},
		{"file", 551, "a driver without rules", ""},
	} {
		o := &driver.Outcome{Verdict: verdictOf(c.driver, c.code), Code: c.code, Text: c.text}
		r := rules.Read(c.driver, "example.org", o)
		if r.Class != c.class {
			name := "none"
			if r.Rule != nil {
				name = r.Rule.Name
			}
			t.Errorf("%s %d %q is %q by rule %s, want %q", c.driver, c.code, c.text, r.Class, name, c.class)
		}
		if r.Verdict != o.Verdict {
			t.Errorf("%s %d %q: a built-in rule changed the verdict", c.driver, c.code, c.text)
		}
	}
}

func TestBrokenConnectionIsANetworkErrorForEveryDriver(t *testing.T) {
	for _, name := range []string{"smtp", "webhook", "file"} {
		r := Builtin().Read(name, "", &driver.Outcome{Verdict: driver.Lost, Text: "the connection broke"})
		if r.Class != fanfare.ClassNetwork || r.Verdict != driver.Lost {
			t.Errorf("%s: %+v", name, r)
		}
	}
}

func TestClassOfADriverIsKept(t *testing.T) {
	r := Builtin().Read("webhook", "", &driver.Outcome{Verdict: driver.Temporary, Code: 503, Class: fanfare.ClassThrottled, RetryAfter: 7 * time.Second, Text: "try again in 5 minutes"})
	if r.Class != fanfare.ClassThrottled || r.RetryAfter != 7*time.Second {
		t.Errorf("read as %+v", r)
	}
}

func TestWaitIsReadFromTheText(t *testing.T) {
	for text, want := range map[string]time.Duration{
		"4.7.1 Greylisting in action, please come back in 00:04:59": 4*time.Minute + 59*time.Second,
		"4.7.1 Greylisted for 300 seconds":                          5 * time.Minute,
		"Please try again in 5 minutes":                             5 * time.Minute,
		"try again in 1 hour.":                                      time.Hour,
		"Retry after 90s":                                           90 * time.Second,
		"You must wait 2 hours before sending more":                 2 * time.Hour,
		"temporarily blocked for 10 min":                            10 * time.Minute,
		"TRY AGAIN IN 30 SECONDS":                                   30 * time.Second,
		"try again in 999999 hours":                                 MaxWait,
		"please try again later":                                    0,
		"try again later, error 300":                                0,
		"try again. 5 messages were taken":                          0,
		"4.2.2 mailbox full since 5 hours":                          0,
		"retry 12:99:00":                                            0,
		"":                                                          0,
	} {
		o := &driver.Outcome{Verdict: driver.Temporary, Code: 455, Text: text}
		if got := (&Rules{}).Read("smtp", "", o).RetryAfter; got != want {
			t.Errorf("%q asks to wait %v, want %v", text, got, want)
		}
	}
}

func TestPermanentRefusalHasNoWait(t *testing.T) {
	o := &driver.Outcome{Verdict: driver.Permanent, Code: 550, Text: "5.7.1 blocked for 10 minutes"}
	if r := Builtin().Read("smtp", "", o); r.RetryAfter != 0 {
		t.Errorf("it asks to wait %v", r.RetryAfter)
	}
}

func TestGreylistingHasADefaultWait(t *testing.T) {
	for text, want := range map[string]time.Duration{
		"4.7.1 Greylisted, see the postmaster": 5 * time.Minute,
		"4.7.1 Greylisted for 30 seconds":      30 * time.Second,
	} {
		o := &driver.Outcome{Verdict: driver.Temporary, Code: 450, Text: text}
		if r := Builtin().Read("smtp", "", o); r.RetryAfter != want {
			t.Errorf("%q asks to wait %v, want %v", text, r.RetryAfter, want)
		}
	}
}

func TestOwnRulesPrecedeBuiltinOnes(t *testing.T) {
	own, err := Parse([]byte(`
rules:
  - {name: one domain, driver: smtp, codes: [550], to: ["*.example.org", example.net], then: retry, class: throttled, suspend: 1h}
  - {name: any, driver: smtp, codes: [550-559], class: full}
  - {name: over, driver: smtp, codes: [452], enhanced: ["4.2.2"], text: 'is over quota\.$', then: fail, class: full, slow: true, after: 3m}
`))
	if err != nil {
		t.Fatal(err)
	}
	rules := own.Before(Builtin())
	for _, c := range []struct {
		to      string
		code    int
		text    string
		rule    string
		class   fanfare.Class
		verdict driver.Verdict
		suspend time.Duration
	}{
		{"mail.example.org", 550, "5.1.1 no", "one domain", fanfare.ClassThrottled, driver.Temporary, time.Hour},
		{"example.net", 550, "5.1.1 no", "one domain", fanfare.ClassThrottled, driver.Temporary, time.Hour},
		{"example.net:25", 550, "5.1.1 no", "one domain", fanfare.ClassThrottled, driver.Temporary, time.Hour},
		{"example.org", 550, "5.1.1 no", "any", fanfare.ClassFull, driver.Permanent, 0},
		{"badexample.net", 551, "5.1.1 no", "any", fanfare.ClassFull, driver.Permanent, 0},
		{"example.org", 452, "4.2.2 the account is over quota.", "over", fanfare.ClassFull, driver.Permanent, 0},
		{"example.org", 452, "4.2.2 the account is over quota today", "mailbox-full", fanfare.ClassFull, driver.Temporary, 0},
		{"example.org", 560, "5.1.1 no", "bad-recipient", fanfare.ClassInvalid, driver.Permanent, 0},
	} {
		r := rules.Read("smtp", c.to, &driver.Outcome{Verdict: verdictOf("smtp", c.code), Code: c.code, Text: c.text})
		if r.Rule == nil || r.Rule.Name != c.rule || r.Class != c.class || r.Verdict != c.verdict || r.Suspend != c.suspend {
			t.Errorf("%d %q of %s is %+v, want it by rule %s", c.code, c.text, c.to, r, c.rule)
		}
	}
}

func TestRuleErrorsHaveAPosition(t *testing.T) {
	for text, want := range map[string]string{
		"rules:\n  - {name: a, class: full, colour: red}":                            `line 2 /rules/0: unknown field "colour"`,
		"rules:\n  - {name: a, class: full}\n  - {name: b, class: spam}":             `line 3 /rules/1/class: "spam" is not a class`,
		"rules:\n  - {class: full}":                                                  `line 2 /rules/0/name: the rule has no valid name`,
		"rules:\n  - {name: a}":                                                      `line 2 /rules/0/class: the rule has no effect`,
		"rules:\n  - {name: a, class: full, codes: [4x0]}":                           `/rules/0/codes: "4x0" is not a reply code`,
		"rules:\n  - {name: a, class: full, codes: [459-450]}":                       `/rules/0/codes: "459-450" is not a reply code`,
		"rules:\n  - {name: a, class: full, enhanced: [4.7]}":                        `/rules/0/enhanced: "4.7" is not an enhanced`,
		"rules:\n  - {name: a, class: full, says: ['']}":                             `/rules/0/says: an entry of says is empty`,
		"rules:\n  - {name: a, class: full, text: '('}":                              `/rules/0/text: error parsing regexp`,
		"rules:\n  - {name: a, class: full, then: maybe}":                            `/rules/0/then: "maybe" is not a valid value of then`,
		"rules:\n  - {name: a, suspend: 48h}":                                        `/rules/0/suspend: "48h" is not a valid duration`,
		"rules:\n  - {name: a, suspend: -1s}":                                        `/rules/0/suspend: "-1s" is not a valid duration`,
		"rules:\n  - {name: a, class: full, to: [a@example.org]}":                    `/rules/0/to: "a@example.org" is not a destination`,
		"rules:\n  - {name: a, class: full, to: [example.*]}":                        `/rules/0/to: "example.*" is not a destination`,
		"rules:\n  - {name: a, class: full, verdicts: [taken]}":                      `/rules/0/verdicts: "taken" is not a verdict`,
		"rules:\n  - {name: a, class: full}\n  - {name: a, class: full}":             `line 3 /rules/1/name: another rule already has the name "a"`,
		"rules:\n  - {name: a, class: full, text: " + strings.Repeat("x", 501) + "}": `/rules/0/text: the pattern has 501 bytes`,
		"rule: []":        `unknown field "rule"`,
		"rules: [":        `line 1`,
		"rules:\n  - abc": `line 2 /rules/0`,
		"\xff":            `not valid UTF-8`,
	} {
		rules, err := Parse([]byte(text))
		if err == nil {
			t.Errorf("%q is taken as %d rules", text, len(rules.All()))
			continue
		}
		if e, ok := errors.AsType[*fanfare.Error](err); !ok || !strings.Contains(told(e), want) {
			t.Errorf("%q is refused with %q, want %q", text, told(e), want)
		}
	}
}

func TestEnhancedStatusCodeIsRecognized(t *testing.T) {
	for text, want := range map[string]enhanced{
		"4.7.28 slow": {4, 7, 28}, "see 5.1.1": {5, 1, 1}, "(#5.1.1)": {5, 1, 1}, "no 4.2.2.": {4, 2, 2}, "4.2.2": {4, 2, 2}, "x 4.7.500 y": {4, 7, 500},
		"192.0.2.1 then 5.7.1 x": {5, 7, 1}, "4.7.1.2": {}, "14.7.1": {}, "4.7": {}, "4..7": {}, "3.1.1": {}, "4.7.1000": {}, "": {}, ".": {}, "5.": {}, "5.1.": {},
	} {
		if got := enhancedIn(text); got != want {
			t.Errorf("%q has %v, want %v", text, got, want)
		}
	}
}

func told(e *fanfare.Error) string {
	if e == nil {
		return ""
	}
	at := ""
	if e.Line > 0 {
		at = "line " + string(rune('0'+e.Line)) + " "
	}
	return at + e.Pointer + ": " + e.Message
}

func TestAllRuleErrorsAreReported(t *testing.T) {
	_, err := Parse([]byte("rules:\n  - {class: full, then: no}\n  - {name: b, codes: [x]}"))
	e, ok := errors.AsType[*fanfare.Error](err)
	if !ok || len(e.Details) != 4 {
		t.Errorf("told %+v, want 4 details", err)
	}
}

func TestEmptyFileHasNoRules(t *testing.T) {
	for _, text := range []string{"", "# nothing yet\n", "rules: []", "rules:\n"} {
		if rules, err := Parse([]byte(text)); err != nil || len(rules.All()) != 0 {
			t.Errorf("%q: %v, %v", text, rules, err)
		}
	}
}

// A rule that an earlier rule hides would never match.
func TestEveryBuiltinRuleMatches(t *testing.T) {
	witness := map[string]*driver.Outcome{
		"connection-lost": {Verdict: driver.Lost}, "greylisted": at(450, "greylisted"), "google-rate": at(421, "4.7.28 slow down"),
		"google-unsolicited-rate": at(421, "unusual rate of unsolicited mail"), "yahoo-user-complaints": at(421, "4.7.0 [TSS04] no"),
		"microsoft-throttled": at(451, "4.7.500 busy"), "microsoft-rate": at(421, "RP-002 no"), "microsoft-block-list": at(550, "block list (S3150)"),
		"too-many-connections": at(421, "too many connections"), "too-fast": at(450, "too many messages"), "on-a-block-list": at(554, "zen.spamhaus.org"),
		"mailbox-full": at(452, "4.2.0 over quota"), "mailbox-full-without-a-code": at(552, "over quota"), "null-mx": at(556, "5.1.10 null"),
		"recipient-rate": at(450, "4.2.1 later"), "mailbox-full-by-code": at(452, "4.2.2"), "bad-recipient": at(550, "5.1.1"), "bad-sender": at(553, "5.1.8"),
		"message-too-large": at(552, "5.3.4"), "mail-system-busy": at(451, "4.3.2"), "mail-system-refuses": at(554, "5.3.0"), "too-many-recipients": at(452, "4.5.3"),
		"network-and-routing": at(451, "4.4.1"), "protocol": at(501, "5.5.2"), "media": at(554, "5.6.1"), "our-authentication": at(535, ""),
		"sender-authentication": at(550, "5.7.26"), "policy-for-now": at(451, "4.7.1 no"), "policy": at(550, "5.7.1 no"), "closing": at(421, ""),
		"no-such-user-in-words": at(554, "user unknown"), "spam-in-words": at(554, "spam"), "local-error": at(451, ""),
		"no-storage": at(452, ""), "no-storage-for-good": at(552, ""), "takes-no-mail": at(521, ""), "no-such-mailbox": at(550, ""), "command-refused": at(502, ""),
		"cannot-be-sent": {Verdict: driver.Permanent},
	}
	hooks := map[string]*driver.Outcome{
		"too-many-requests": hook(429), "unavailable": hook(503), "too-early": hook(425), "request-time-out": hook(408), "receiver-has-no-room": hook(507),
		"server-error": hook(500), "not-let-in": hook(403), "no-such-receiver": hook(410), "not-followed": hook(302), "not-taken": hook(400),
		"no-answer": {Verdict: driver.Temporary},
	}
	rules := Builtin()
	for _, rule := range rules.All() {
		name, o := "smtp", witness[rule.Name]
		if o == nil {
			name, o = "webhook", hooks[rule.Name]
		}
		if o == nil {
			t.Errorf("rule %s has no witness here", rule.Name)
			continue
		}
		if r := rules.Read(name, "", o); r.Rule != rule {
			t.Errorf("%d %q is read by %v, not by %s", o.Code, o.Text, r.Rule, rule.Name)
		}
	}
}

func at(code int, text string) *driver.Outcome {
	return &driver.Outcome{Verdict: verdictOf("smtp", code), Code: code, Text: text}
}

func hook(code int) *driver.Outcome {
	return &driver.Outcome{Verdict: verdictOf("webhook", code), Code: code}
}

// FuzzReplyAndRules reads any reply and any file of rules. It must not panic, and a wait must be
// limited.
func FuzzReplyAndRules(f *testing.F) {
	f.Add("rules: [{name: a, class: full, text: quota}]", 452, "4.2.2 over quota, try again in 5 minutes")
	f.Add("rules: [{name: b, then: retry, enhanced: ['*.7.1-9']}]", 550, "5.7.1 wait 999999 hours")
	builtin := Builtin()
	f.Fuzz(func(t *testing.T, file string, code int, text string) {
		rules := builtin
		if own, err := Parse([]byte(file)); err == nil {
			rules = own.Before(builtin)
		}
		for _, verdict := range []driver.Verdict{driver.Temporary, driver.Permanent, driver.Lost} {
			r := rules.Read("smtp", "example.org", &driver.Outcome{Verdict: verdict, Code: code, Text: text})
			if r.RetryAfter < 0 || r.RetryAfter > MaxWait || r.Suspend < 0 || r.Suspend > MaxWait || r.Verdict == driver.Accepted {
				t.Fatalf("%d %q is read as %+v", code, text, r)
			}
		}
	})
}

func BenchmarkReadTheLastRule(b *testing.B) {
	rules := Builtin()
	o := &driver.Outcome{Verdict: driver.Permanent, Code: 555, Text: "Something that a receiver says at some length, with nothing in it that is known to anybody"}
	for b.Loop() {
		rules.Read("smtp", "example.org", o)
	}
}

func TestAnEmptyRuleIsAnErrorWithItsPlace(t *testing.T) {
	for _, text := range []string{"rules:\n- ~\n", "rules:\n-\n", "rules: [null]\n"} {
		_, err := Parse([]byte(text))
		e, ok := errors.AsType[*fanfare.Error](err)
		if !ok || e.Code != fanfare.Invalid || e.Pointer != "/rules/0" {
			t.Errorf("%q: %v", text, err)
		}
	}
}
