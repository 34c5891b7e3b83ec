//go:build peers

package peers

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
)

// The ids that the documents below set.
const (
	welcomeID  = "6d1f4c0e-5a0b-4a0c-9d6e-0b7a5a1f0001"
	textID     = "6d1f4c0e-5a0b-4a0c-9d6e-0b7a5a1f0002"
	downloadID = "6d1f4c0e-5a0b-4a0c-9d6e-0b7a5a1f0003"
	plainID    = "6d1f4c0e-5a0b-4a0c-9d6e-0b7a5a1f0004"
	foreignID  = "6d1f4c0e-5a0b-4a0c-9d6e-0b7a5a1f0005"
	replyID    = "8b0d2b3e-1111-4a0c-9d6e-0b7a5a1f0001"
	senderID   = "8b0d2b3e-1111-4a0c-9d6e-0b7a5a1f0002"
	nobodysID  = "11111111-2222-4333-8444-555555555555"
)

// notifyDocument is a service that all types of keys use.
const notifyDocument = `service: news
title: City News
notify:
  email: email
  sms: sms
  contact: help@example.org
  team: [team@example.org]
  report_accepted_as_delivered: immediately
  reply_to: [{id: ` + replyID + `, address: reply@example.org}]
  sms_senders: [{id: ` + senderID + `, address: CITYNEWS, default: true}]
channels:
  email: {driver: smtp, relay: %q, from: "City News <news@example.com>", rate: unlimited, retry: [1s]}
  sms: {driver: webhook, addresses: phone, url: %q, allow_http: true}
templates:
  welcome:
    id: ` + welcomeID + `
    title: Welcome mail
    syntax: notify
    subject: "Hello ((name))"
    markdown: "# Hello ((name))\n\nYour items:\n((items))\n\n((late??You are late.))\n"
  text: {id: ` + textID + `, type: sms, syntax: notify, text: "Hi ((name)): ((items))"}
  download: {id: ` + downloadID + `, syntax: notify, subject: "Your file", markdown: "Download it: ((link))"}
`

// otherDocument is a service with limits of its own.
const otherDocument = `service: %s
notify: {email: email, %s}
channels:
  email: {driver: smtp, relay: %q, from: "Other <other@example.com>"}
templates:
  plain: {id: %s, syntax: notify, subject: "s", markdown: "plain"}
`

// A notifyStep is a call of a client, with what it must return or raise.
type notifyStep struct {
	name, key, call string
	args            map[string]any
	want            map[string]string // expressions that match members of the result, by path
	status          int               // of an error
	error, message  string            // of the first error; message is an expression
	not             string            // the language whose client has no such call, or checks it by itself
}

type object = map[string]any

// notifySteps returns the calls. person is the local part of the recipients.
func notifySteps(person string) []notifyStep {
	to := person + "@example.org"
	sent := map[string]string{"id": `^[0-9a-f-]{36}$`, "reference": `^ref-` + person + `$`, "content.subject": "^Hello Ada$", "content.from_email": `^news@example\.com$`,
		"content.body": `(?s)^# Hello Ada\n\nYour items:\n\n\n\* one\n\* \*two\*$`, "template.id": "^" + welcomeID + "$", "template.version": "^1$", "template.uri": "^http://.*/v2/template/" + welcomeID}
	values := object{"Name": "Ada", "items": []any{"one", "*two*"}, "late": "no"}
	email := func(name, key string, more object) notifyStep {
		args := object{"email_address": to, "template_id": welcomeID, "personalisation": values}
		for k, v := range more {
			args[k] = v
		}
		return notifyStep{name: name, key: key, call: "email", args: args}
	}
	sms := func(name, key, phone string) notifyStep {
		return notifyStep{name: name, key: key, call: "sms", args: object{"phone_number": phone, "template_id": textID, "personalisation": object{"name": "Ada", "items": []any{"x", "y"}}}}
	}
	ok := func(s notifyStep, want map[string]string) notifyStep { s.want = want; return s }
	fails := func(s notifyStep, status int, class, message string) notifyStep {
		s.status, s.error, s.message = status, class, message
		return s
	}
	get := func(name, key, call string, args object) notifyStep {
		return notifyStep{name: name, key: key, call: call, args: args}
	}
	except := func(language string, s notifyStep) notifyStep { s.not = language; return s }

	return []notifyStep{
		// Mails.
		ok(email("email", "live", object{"reference": "ref-" + person}), sent),
		ok(get("email delivered", "live", "poll", object{"id": "$email.id", "status": "delivered"}), map[string]string{
			"status": "^delivered$", "type": "^email$", "email_address": "^" + regexp.QuoteMeta(to) + "$", "subject": "^Hello Ada$", "body": `^# Hello Ada`, "reference": "^ref-" + person + "$",
			"created_at": `^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d`, "completed_at": `^\d{4}-`, "template.version": "^1$"}),
		ok(email("email with options", "live", object{"email_address": "options-" + to, "email_reply_to_id": replyID, "one_click_unsubscribe_url": "https://example.org/leave?" + person}),
			map[string]string{"content.one_click_unsubscribe_url": `^https://example\.org/leave\?` + person + "$"}),
		except("java", ok(email("email sanitised", "live", object{"email_address": "sanitised-" + to, "personalisation": object{"name": "[x](https://evil.example)", "items": "a", "late": "no"}, "sanitise_content_for": []any{"name"}}),
			map[string]string{"content.body": `(?s)^# Hello \\\[x`})),
		ok(notifyStep{name: "email with file", key: "live", call: "email", args: object{"email_address": "file-" + to, "template_id": downloadID,
			"personalisation": object{"link": object{"upload": "a,b\n", "filename": "list.csv", "confirm_email_before_download": true, "retention_period": "4 weeks"}}}},
			map[string]string{"content.body": `^Download it: http://\S+$`}),
		ok(notifyStep{name: "email with plain file", key: "live", call: "email", args: object{"email_address": "file2-" + to, "template_id": downloadID, "personalisation": object{"link": object{"upload": "text"}}}},
			map[string]string{"content.body": `^Download it: http://\S+$`}),
		fails(notifyStep{name: "file of wrong type", key: "live", call: "email", args: object{"email_address": to, "template_id": downloadID, "personalisation": object{"link": object{"upload": "x", "filename": "a.exe"}}}},
			400, "BadRequestError", "Unsupported file type"),
		fails(email("unknown template", "live", object{"template_id": nobodysID}), 400, "BadRequestError", "."),
		fails(email("template is no UUID", "live", object{"template_id": "welcome"}), 400, "ValidationError", "^template_id is not a valid UUID$"),
		fails(email("template of another type", "live", object{"template_id": textID}), 400, "BadRequestError", "."),
		fails(email("template of another service", "live", object{"template_id": foreignID}), 400, "BadRequestError", "."),
		fails(email("missing values", "live", object{"personalisation": object{"late": "no"}}), 400, "BadRequestError", "^Missing personalisation: name, items$"),
		fails(email("wrong address", "live", object{"email_address": "nobody"}), 400, "ValidationError", "^email_address Not a valid email address$"),
		fails(email("long reference", "live", object{"reference": strings.Repeat("r", 1001)}), 400, "ValidationError", "^reference r+ is too long$"),
		fails(email("unknown reply-to", "live", object{"email_reply_to_id": nobodysID}), 400, "BadRequestError", "."),
		fails(email("reply-to is no UUID", "live", object{"email_reply_to_id": "me"}), 400, "ValidationError", "^email_reply_to_id is not a valid UUID$"),
		fails(email("unsubscribe without TLS", "live", object{"one_click_unsubscribe_url": "http://example.org"}), 400, "ValidationError", "^one_click_unsubscribe_url is not a valid https url$"),
		except("java", fails(email("personalisation is a text", "live", object{"personalisation": "x"}), 400, "ValidationError", "^personalisation x is not of type object$")),

		// Text messages.
		ok(sms("sms", "live", "07900 900 123"), map[string]string{"content.body": "^Hi Ada: x and y$", "content.from_number": "^CITYNEWS$", "template.id": "^" + textID + "$"}),
		ok(get("sms sent", "live", "notification", object{"id": "$sms.id"}), map[string]string{"type": "^sms$", "phone_number": "^(07900 900 123|\\+447900900123)$", "body": "^Hi Ada: x and y$", "status": "^(created|sending|delivered)$"}),
		ok(notifyStep{name: "sms with sender", key: "live", call: "sms", args: object{"phone_number": "+447900900123", "template_id": textID, "sms_sender_id": senderID, "reference": "sms-" + person, "personalisation": object{"name": "“Zoš”", "items": "–"}}},
			map[string]string{"content.body": `^Hi "Zos": -$`, "reference": "^sms-" + person + "$"}),
		fails(sms("short number", "live", "07900"), 400, "ValidationError", "^phone_number Not enough digits$"),
		fails(sms("long number", "live", "0790090012345"), 400, "ValidationError", "^phone_number Too many digits$"),
		fails(sms("number with letters", "live", "07900 ABC 123"), 400, "ValidationError", "^phone_number Must not contain letters or symbols$"),
		fails(notifyStep{name: "file in a text message", key: "live", call: "sms", args: object{"phone_number": "07900900123", "template_id": textID, "personalisation": object{"name": object{"upload": "text"}, "items": "a"}}}, 400, "BadRequestError", "."),
		fails(notifyStep{name: "mail template as sms", key: "live", call: "sms", args: object{"phone_number": "07900900123", "template_id": welcomeID, "personalisation": values}}, 400, "BadRequestError", "."),

		// Letters.
		fails(notifyStep{name: "letter", key: "live", call: "letter", args: object{"template_id": welcomeID, "personalisation": object{"address_line_1": "A", "address_line_2": "B", "address_line_3": "SW1A 1AA"}, "reference": "r"}}, 400, "BadRequestError", "(?i)letter"),
		fails(notifyStep{name: "precompiled letter", key: "live", call: "precompiled", args: object{"reference": "r", "content": "%PDF-1.7"}}, 400, "BadRequestError", "(?i)letter"),
		fails(notifyStep{name: "letter with a team key", key: "team", call: "letter", args: object{"template_id": welcomeID, "personalisation": object{"address_line_1": "A"}}}, 403, "BadRequestError", "(?i)letter"),
		fails(get("pdf of a mail", "live", "pdf", object{"id": "$email.id"}), 400, "BadRequestError", "."),

		// Reading.
		ok(get("notifications", "live", "notifications", object{"reference": "ref-" + person}), map[string]string{"notifications.0.id": "^.{36}$", "notifications.0.reference": "^ref-" + person + "$", "links.current": "^http", "links.next": "older_than="}),
		ok(get("mails that were delivered", "live", "notifications", object{"template_type": "email", "status": "delivered", "reference": "ref-" + person}), map[string]string{"notifications.0.type": "^email$", "notifications.0.status": "^delivered$"}),
		ok(get("older notifications", "live", "notifications", object{"reference": "ref-" + person, "older_than": "$email.id"}), map[string]string{"notifications": `^\[\]$`}),
		ok(get("older than nothing", "live", "notifications", object{"older_than": nobodysID}), map[string]string{"notifications": `^\[\]$`}),
		ok(get("all notifications", "live", "all_notifications", object{"template_type": "sms", "reference": "sms-" + person}), map[string]string{"notifications.0.reference": "^sms-" + person + "$"}),
		fails(get("unknown status", "live", "notifications", object{"status": "lost"}), 400, "ValidationError", `^status lost is not one of \[`),
		fails(get("unknown type", "live", "notifications", object{"template_type": "fax"}), 400, "ValidationError", `^template_type fax is not one of \[`),
		fails(get("older than no UUID", "live", "notifications", object{"older_than": "x"}), 400, "ValidationError", "^older_than is not a valid UUID$"),
		fails(get("unknown notification", "live", "notification", object{"id": nobodysID}), 404, "NoResultFound", "."),
		fails(get("notification without UUID", "live", "notification", object{"id": "x"}), 400, "ValidationError", "^notification_id is not a valid UUID$"),
		fails(get("notification of another service", "other", "notification", object{"id": "$email.id"}), 404, "NoResultFound", "."),
		ok(get("received texts", "live", "received", nil), map[string]string{"received_text_messages": `^\[\]$`, "links.current": "^http"}),
		ok(get("all received texts", "live", "all_received", nil), map[string]string{"received_text_messages": `^\[\]$`}),

		// Templates.
		ok(get("template", "live", "template", object{"id": welcomeID}), map[string]string{"id": "^" + welcomeID + "$", "name": "^Welcome mail$", "type": "^email$", "version": "^1$", "subject": `^Hello \(\(name\)\)$`, "body": `^# Hello`, "personalisation.items.required": "^true$", "created_at": `^\d{4}-`}),
		ok(get("template of a text message", "live", "template", object{"id": textID}), map[string]string{"type": "^sms$", "subject": "^null$"}),
		ok(get("template version", "live", "template_version", object{"id": welcomeID, "version": 1}), map[string]string{"version": "^1$"}),
		ok(get("templates", "live", "templates", nil), map[string]string{"templates.2.id": "^.{36}$"}),
		ok(get("templates for sms", "live", "templates", object{"template_type": "sms"}), map[string]string{"templates.0.id": "^" + textID + "$"}),
		ok(get("preview", "live", "preview", object{"id": welcomeID, "personalisation": values}), map[string]string{"subject": "^Hello Ada$", "body": `^# Hello Ada`, "html": "<h2.*Hello Ada</h2>", "version": "^1$"}),
		fails(get("preview without values", "live", "preview", object{"id": welcomeID, "personalisation": object{"late": "no"}}), 400, "BadRequestError", "^Missing personalisation: name, items$"),
		fails(get("preview of an unknown template", "live", "preview", object{"id": nobodysID, "personalisation": object{}}), 404, "NoResultFound", "."),
		fails(get("unknown template by id", "live", "template", object{"id": nobodysID}), 404, "NoResultFound", "."),
		fails(get("foreign template by id", "live", "template", object{"id": foreignID}), 404, "NoResultFound", "."),
		fails(get("template by no UUID", "live", "template", object{"id": "x"}), 400, "ValidationError", "^id is not a valid UUID$"),
		fails(get("unknown version", "live", "template_version", object{"id": welcomeID, "version": 99}), 404, "NoResultFound", "."),
		except("java", fails(get("templates of an unknown type", "live", "templates", object{"template_type": "fax"}), 400, "ValidationError", `^(template_)?type fax is not one of \[`)),

		// Keys.
		fails(email("wrong secret", "wrong", nil), 403, "AuthError", "(?i)key not found"),
		fails(email("unknown service", "unknown", nil), 403, "AuthError", "(?i)service"),
		fails(email("revoked key", "revoked", nil), 403, "AuthError", "(?i)revoked"),
		fails(email("stranger with a team key", "team", nil), 400, "BadRequestError", "(?i)team"),
		ok(email("member of the team", "team", object{"email_address": "team@example.org"}), map[string]string{"id": "."}),
		fails(notifyStep{name: "stranger in a trial", key: "trial", call: "email", args: object{"email_address": to, "template_id": plainID}}, 400, "BadRequestError", "(?i)trial"),

		// Simulation.
		ok(email("simulated address", "live", object{"email_address": "simulate-delivered@notifications.service.gov.uk"}), map[string]string{"id": "^.{36}$", "content.subject": "^Hello Ada$"}),
		fails(get("simulated address is not kept", "live", "notification", object{"id": "$simulated address.id"}), 404, "NoResultFound", "."),
		ok(sms("simulated number", "live", "07700900111"), map[string]string{"id": "^.{36}$"}),
		ok(email("test", "test", object{"reference": "test-" + person}), map[string]string{"content.subject": "^Hello Ada$"}),
		ok(get("test delivered", "test", "poll", object{"id": "$test.id", "status": "delivered"}), map[string]string{"status": "^delivered$"}),
		ok(email("temporary", "test", object{"email_address": "temp-fail@simulator.notify"}), map[string]string{"id": "."}),
		ok(get("temporary failure", "test", "poll", object{"id": "$temporary.id", "status": "temporary-failure"}), map[string]string{"status": "^temporary-failure$"}),
		ok(email("permanent", "test", object{"email_address": "perm-fail@simulator.notify"}), map[string]string{"id": "."}),
		ok(get("permanent failure", "test", "poll", object{"id": "$permanent.id", "status": "permanent-failure"}), map[string]string{"status": "^permanent-failure$"}),
		ok(sms("permanent number", "test", "07700900002"), map[string]string{"id": "."}),
		ok(get("permanent failure of a number", "test", "poll", object{"id": "$permanent number.id", "status": "permanent-failure"}), map[string]string{"status": "^permanent-failure$"}),
		ok(get("list of a test key", "test", "notifications", object{"reference": "test-" + person}), map[string]string{"notifications.0.status": "^delivered$"}),
		ok(get("list of another type of key", "live", "notifications", object{"reference": "test-" + person}), map[string]string{"notifications": `^\[\]$`}),

		// Limits: each client has a service of its own.
		ok(notifyStep{name: "first", key: "rate", call: "email", args: object{"email_address": to, "template_id": plainID}}, map[string]string{"id": "."}),
		fails(notifyStep{name: "too fast", key: "rate", call: "email", args: object{"email_address": to, "template_id": plainID}}, 429, "RateLimitError", "LIVE"),
		ok(notifyStep{name: "first of the day", key: "daily", call: "email", args: object{"email_address": to, "template_id": plainID}}, map[string]string{"id": "."}),
		fails(notifyStep{name: "too many", key: "daily", call: "email", args: object{"email_address": to, "template_id": plainID}}, 429, "TooManyRequestsError", "1"),
	}
}

// A notifyServer is a server with services for clients of Notify.
type notifyServer struct {
	*started
	sink  *peer
	relay string
	api   string // address of the API of Notify

	mu    sync.Mutex
	texts []object // requests at the SMS provider
}

func startNotify(t *testing.T) *notifyServer {
	t.Helper()
	s := &notifyServer{}
	s.sink, s.relay = startSink(t)
	provider := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		var text object
		if err == nil {
			err = json.Unmarshal(body, &text)
		}
		if err != nil {
			t.Errorf("the SMS provider got %q: %v", body, err)
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		s.texts = append(s.texts, text)
	}))
	t.Cleanup(provider.Close)
	s.started = start(t, "--notify-listen", "127.0.0.1:0", "--allow-networks", "127.0.0.0/8")
	s.apply(fmt.Sprintf(notifyDocument, s.relay, provider.URL+"/sms"))
	s.apply(fmt.Sprintf(otherDocument, "other", "daily: {email: 1000}", s.relay, foreignID))
	log, err := os.ReadFile(s.log)
	if err != nil {
		t.Fatal(err)
	}
	found := regexp.MustCompile(`clients of GOV.UK Notify.* url=(\S+)`).FindSubmatch(log)
	if found == nil {
		t.Fatalf("no listener of Notify in\n%s", log)
	}
	s.api = string(found[1])
	return s
}

func (s *notifyServer) apply(document string) {
	s.t.Helper()
	if _, err := s.client.Apply(s.t.Context(), []byte(document), false); err != nil {
		s.t.Fatalf("%v\n%s", err, document)
	}
}

// command runs the program as an operator does, and returns what it prints.
func (s *notifyServer) command(args ...string) string {
	s.t.Helper()
	command := exec.CommandContext(s.t.Context(), s.binary, append(args, "--server", s.url)...)
	command.Env = append(os.Environ(), "FANFARE_KEY="+s.key)
	var errors bytes.Buffer
	command.Stderr = &errors
	out, err := command.Output()
	if err != nil {
		s.t.Fatalf("%v: %v\n%s", args, err, errors.Bytes())
	}
	return strings.TrimSpace(string(out))
}

func (s *notifyServer) newKey(service, kind string) string {
	s.t.Helper()
	return s.command("key", "create", "--service", service, "--notify", kind, "--name", kind)
}

// A notifyLine is what a client printed about a step.
type notifyLine struct {
	Step    string
	Result  any
	Status  int
	Errors  []struct{ Error, Message string }
	Code    int
	Class   string
	Failure string
}

// The official clients of GOV.UK Notify work unmodified: every method, with the errors that they raise against Notify.
func TestNotifyClientsWorkUnmodified(t *testing.T) {
	t.Parallel()
	s := startNotify(t)
	keys := map[string]string{"live": s.newKey("news", "live"), "team": s.newKey("news", "team"), "test": s.newKey("news", "test"), "other": s.newKey("other", "live")}
	live := keys["live"]
	keys["wrong"] = live[:len(live)-36] + nobodysID
	keys["unknown"] = "x-" + nobodysID + "-" + nobodysID
	keys["revoked"] = s.newKey("news", "live")
	s.revoke()
	for language, command := range map[string][]string{
		"python": {tool(t, "notify/python/bin/python"), "notify/client.py"},
		"node":   {program(t, "node"), "notify/client.js"},
		"java":   {program(t, "java"), "-cp", tool(t, "notify/java") + "/*", "notify/Client.java"},
	} {
		t.Run(language, func(t *testing.T) {
			own := map[string]string{}
			for name, key := range keys {
				own[name] = key
			}
			for name, setting := range map[string]string{"rate": "rate: 1/h", "daily": "daily: {email: 1}", "trial": "trial: true"} {
				service := language + "-" + name
				s.apply(fmt.Sprintf(otherDocument, service, setting, s.relay, plainID))
				own[name] = s.newKey(service, "live")
			}
			steps := notifySteps(language)
			if language != "java" { // it has no such parameter
				steps = append(steps, notifyStep{name: "mails and texts", key: "live", call: "notifications", args: object{"template_type": "email", "status": "delivered"}, want: map[string]string{"notifications.0.status": "^delivered$"}})
			}
			if language == "java" { // it looks for the URL beside the content, where Notify does not have it
				for i := range steps {
					if _, ok := steps[i].want["content.one_click_unsubscribe_url"]; ok {
						steps[i].want["content.one_click_unsubscribe_url"] = "^null$"
					}
				}
			}
			steps = slices.DeleteFunc(steps, func(step notifyStep) bool { return step.not == language })
			if language == "python" { // the others have no such method, and the route is one of Notify's own pages
				steps = append(steps, notifyStep{name: "versions", key: "live", call: "template_versions", args: object{"id": welcomeID}, status: -1})
			}
			lines := s.run(t, command, own, steps)
			for i := range steps {
				checkNotify(t, &steps[i], lines[steps[i].name], language)
			}
			s.checkSent(t, language)
		})
	}
}

// The import command reads templates from an API of Notify: here, that of the same server.
func TestTemplatesAreImportedFromNotify(t *testing.T) {
	t.Parallel()
	s := startNotify(t)
	s.apply("service: news\ntemplates:\n  download: {id: " + downloadID + `, title: Download mail, syntax: notify, subject: "Your file", markdown: "Get it: ((link))", min_version: 7}` + "\n")
	s.apply(fmt.Sprintf(strings.Replace(notifyDocument[:strings.Index(notifyDocument, "templates:")], "service: news", "service: copy", 1), s.relay, "http://127.0.0.1:1/"))
	keyFile := s.write("notify-key.txt", s.newKey("news", "test")+"\n")
	for _, want := range []string{"3 created, 0 updated, 0 unchanged, 0 rejected, 0 skipped", "0 created, 0 updated, 3 unchanged, 0 rejected, 0 skipped"} {
		if got := s.command("import", "notify-templates", "--service", "copy", "--url", s.api, "--key-file", keyFile); !strings.HasPrefix(got, want) {
			t.Errorf("the command says %q, want %q", got, want)
		}
	}
	got := map[string]string{}
	for template, err := range s.client.ForService("copy").Templates().All(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		got[template.ID] = fmt.Sprintf("%s: %s %s %s%s, version %d", template.Name, template.Title, template.Type, template.Markdown, template.Text, template.Version)
	}
	for id, want := range map[string]string{
		welcomeID:  "welcome-mail: Welcome mail email # Hello ((name))\n\nYour items:\n((items))\n\n((late??You are late.))\n, version 1",
		textID:     "text: text sms Hi ((name)): ((items)), version 1",
		downloadID: "download-mail: Download mail email Get it: ((link)), version 7",
	} {
		if got[id] != want {
			t.Errorf("%s is %q, want %q", id, got[id], want)
		}
	}
	s.command("template", "delete", "text", "--service", "copy")
	if got := s.command("import", "notify-templates", "--service", "copy", "--url", s.api, "--key-file", keyFile); !strings.HasPrefix(got, "1 created, 0 updated, 2 unchanged") {
		t.Errorf("after a deletion: %q", got)
	}
}

// revoke revokes the newest key of news.
func (s *notifyServer) revoke() {
	s.t.Helper()
	var list []struct{ ID, Service string }
	if err := json.Unmarshal([]byte(s.command("key", "list", "--service", "news", "--json")), &list); err != nil {
		s.t.Fatal(err)
	}
	newest := ""
	for _, k := range list {
		if k.Service == "news" && (len(k.ID) > len(newest) || len(k.ID) == len(newest) && k.ID > newest) {
			newest = k.ID
		}
	}
	s.command("key", "revoke", newest)
}

// run runs a client with a plan of steps, and returns its lines by step.
func (s *notifyServer) run(t *testing.T, command []string, keys map[string]string, steps []notifyStep) map[string]notifyLine {
	t.Helper()
	type step struct {
		Name string `json:"name"`
		Key  string `json:"key"`
		Call string `json:"call"`
		Args object `json:"args"`
	}
	plan := struct {
		URL   string            `json:"url"`
		Keys  map[string]string `json:"keys"`
		Steps []step            `json:"steps"`
	}{URL: s.api, Keys: keys}
	for _, one := range steps {
		args := one.args
		if args == nil {
			args = object{}
		}
		plan.Steps = append(plan.Steps, step{one.name, one.key, one.call, args})
	}
	text, err := json.Marshal(plan)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "plan.json")
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
	args := append(slices.Clone(command[1:]), path)
	if strings.HasSuffix(command[1], ".js") {
		args = append(args, tool(t, "notify/node/node_modules"))
	}
	run := exec.CommandContext(t.Context(), command[0], args...)
	var errors bytes.Buffer
	run.Stderr = &errors
	out, err := run.Output()
	if err != nil {
		t.Fatalf("%v\n%s", err, errors.Bytes())
	}
	lines := map[string]notifyLine{}
	for scanner := bufio.NewScanner(bytes.NewReader(out)); scanner.Scan(); {
		var line notifyLine
		if err := json.Unmarshal(scanner.Bytes(), &line); err != nil {
			t.Fatalf("%v: %s", err, scanner.Bytes())
		}
		lines[line.Step] = line
	}
	return lines
}

// checkNotify compares a line with what the step must return or raise.
func checkNotify(t *testing.T, step *notifyStep, got notifyLine, language string) {
	t.Helper()
	switch {
	case got.Step == "":
		t.Errorf("%s: nothing was printed", step.name)
	case step.status < 0:
		if got.Result != nil {
			t.Errorf("%s: a route of Notify's own pages was answered: %v", step.name, got.Result)
		}
	case got.Failure != "":
		t.Errorf("%s: the client failed: %s", step.name, got.Failure)
	case step.status != 0:
		if got.Status != step.status || len(got.Errors) == 0 || got.Errors[0].Error != step.error || !regexp.MustCompile(step.message).MatchString(got.Errors[0].Message) {
			t.Errorf("%s: %d %+v %v, want %d %s with %s", step.name, got.Status, got.Errors, got.Result, step.status, step.error, step.message)
		}
		if language == "node" && got.Code != step.status {
			t.Errorf("%s: status_code %d in the body", step.name, got.Code)
		}
		if language == "python" && got.Class != "HTTPError" {
			t.Errorf("%s: raises %s", step.name, got.Class)
		}
	case got.Result == nil:
		t.Errorf("%s: %d %+v, want a result", step.name, got.Status, got.Errors)
	default:
		for path, want := range step.want {
			if value := member(got.Result, path); !regexp.MustCompile(want).MatchString(value) {
				t.Errorf("%s: %s is %s, want %s", step.name, path, value, want)
			}
		}
	}
}

// member returns the text of a member of a result.
func member(value any, path string) string {
	for name := range strings.SplitSeq(path, ".") {
		switch of := value.(type) {
		case map[string]any:
			value = of[name]
		case []any:
			if i, err := strconv.Atoi(name); err == nil && i < len(of) {
				value = of[i]
			} else {
				return "(absent)"
			}
		default:
			return "(absent)"
		}
	}
	if text, ok := value.(string); ok {
		return text
	}
	text, err := json.Marshal(value)
	if err != nil {
		return err.Error()
	}
	return string(text)
}

// checkSent compares the mails at the relay and the texts at the provider with what a client sent.
func (s *notifyServer) checkSent(t *testing.T, person string) {
	t.Helper()
	var mails []mail
	wanted := []string{person, "options-" + person, "file-" + person, "file2-" + person}
	s.eventually("the mails arrive", func() bool {
		mails = append(mails, s.sink.delivered()...)
		for _, name := range wanted {
			if !slices.ContainsFunc(mails, func(m mail) bool { return m.to == name+"@example.org" }) {
				return false
			}
		}
		return true
	})
	for _, m := range mails {
		local, _, _ := strings.Cut(m.to, "@")
		switch {
		case strings.HasPrefix(m.to, "simulate-"), strings.HasSuffix(m.to, "simulator.notify"):
			t.Errorf("a mail to %s was sent", m.to)
		case local == person && strings.Contains(m.text, "Subject: Hello Ada"):
			for _, want := range []string{"• one\n", "• *two*\n", "Hello Ada\n" + strings.Repeat("=", 65), "<li", "From: City News <news@example.com>"} {
				if !strings.Contains(decoded(t, m.text), want) {
					t.Errorf("the mail to %s lacks %q:\n%s", m.to, want, m.text)
				}
			}
		case local == "options-"+person:
			for _, want := range []string{"Reply-To: reply@example.org", "List-Unsubscribe: <https://example.org/leave?" + person + ">", "List-Unsubscribe-Post: List-Unsubscribe=One-Click"} {
				if !strings.Contains(m.text, want) {
					t.Errorf("the mail to %s lacks %q:\n%s", m.to, want, m.text)
				}
			}
		case local == "file-"+person:
			s.checkDownload(t, m)
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if !slices.ContainsFunc(s.texts, func(text object) bool {
		return text["to"] == "+447900900123" && text["text"] == "Hi Ada: x and y"
	}) {
		t.Errorf("the SMS provider got %v", s.texts)
	}
}

// checkDownload follows the link of a mail to its file.
func (s *notifyServer) checkDownload(t *testing.T, m mail) {
	t.Helper()
	link := regexp.MustCompile(regexp.QuoteMeta(s.api) + `/d/[\w-]+`).FindString(decoded(t, m.text))
	if link == "" {
		t.Errorf("the mail to %s has no link:\n%s", m.to, m.text)
		return
	}
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, link, strings.NewReader("address="+m.to))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	response, err := http.DefaultTransport.RoundTrip(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil || string(body) != "a,b\n" || !strings.Contains(response.Header.Get("Content-Disposition"), "list.csv") {
		t.Errorf("%s: %d %q %v %v", link, response.StatusCode, body, response.Header, err)
	}
}

var encodedByte = regexp.MustCompile(`=[0-9A-F]{2}`)

// decoded returns a mail without the encoding quoted-printable.
func decoded(t *testing.T, text string) string {
	t.Helper()
	return encodedByte.ReplaceAllStringFunc(strings.ReplaceAll(text, "=\n", ""), func(code string) string {
		n, err := strconv.ParseUint(code[1:], 16, 8)
		if err != nil {
			t.Fatal(err)
		}
		return string([]byte{byte(n)})
	})
}
