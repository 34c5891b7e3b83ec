package e2e

import (
	"strings"
	"testing"

	"fanfare.dev/fanfare/client"
	"fanfare.dev/fanfare/internal/sink"
)

// A draft stands beside what is published, and nobody is written to with it until it is
// published itself; what is under way then keeps its version.
func TestADraftIsReadByNobodyUntilItIsPublished(t *testing.T) {
	t.Parallel()
	s, r := newsroom(t, sink.Config{}, "")
	s.subscribe("ada@example.org")
	mailsOf := func(title string) string {
		t.Helper()
		s.http.completed(s.http.publish(`{"title":"` + title + `"}`))
		mails := r.of("ada@example.org")
		return mails[len(mails)-1]
	}

	draft := write(t, "draft.yaml", "subject: \"News: {{ event.title }}\"\ntext_file: body.txt\nlocales: {cy: {subject: \"Newyddion: {{ event.title }}\"}}\n")
	if ran := s.run("", "template", "draft", "story", "-f", draft); ran.code != 1 || !strings.Contains(ran.err, "body.txt") {
		t.Errorf("a draft whose text is in no file: %d %s", ran.code, ran.err)
	}
	wrong := write(t, "wrong.yaml", "service: news\ntemplates:\n  story:\n    subject: \"{{ event.titel }}\"\n    text: t\n")
	if ran := s.run("", "template", "draft", "story", "-f", wrong); ran.code != 1 || !strings.Contains(ran.err, "wrong.yaml") || !strings.Contains(ran.err, "titel") || !strings.Contains(ran.err, "in topic story") {
		t.Errorf("a draft that reads what no story has: %d %s", ran.code, ran.err)
	}
	s.http.refused(404, "GET", "/v1/templates/story/draft", "", "")
	draft = write(t, "draft.yaml", "subject: \"News: {{ event.title }}\"\ntext: \"There is {{ event.title }}!!\\n{{ unsubscribe_url }}\\n\"\nlocales: {cy: {subject: \"Newyddion!! {{ event.title }}\"}}\n")
	if said := s.mustRun("", "template", "draft", "story", "-f", draft, "--note", "as people say it"); !strings.Contains(said, "saved version 2 as a draft, version 1 is still published") {
		t.Errorf("keeping a draft says %q", said)
	}

	if p := into[preview](t, s.mustRun("", "preview", "story", "--json")); p.Template != "story@1" || p.Subject != "sample" {
		t.Errorf("what is published is shown as %+v", p)
	}
	for _, flag := range [][]string{{"--draft"}, {"--version", "2"}} {
		if p := into[preview](t, s.mustRun("", append([]string{"preview", "story", "--json"}, flag...)...)); p.Template != "story@2 (draft)" || p.Subject != "News: sample" {
			t.Errorf("with %q the draft is shown as %+v", flag, p)
		}
	}
	if ran := s.run("", "template", "lint", "story", "--draft"); ran.code != 1 || !strings.Contains(ran.out, "story/locales/cy/subject:1") {
		t.Errorf("of the draft lint says %d %s%s", ran.code, ran.out, ran.err)
	}
	diff := s.mustRun("", "template", "diff", "story")
	for _, line := range []string{"--- story@1/subject\n+++ story@2 (draft)/subject\n@@ -1 +1 @@\n-{{ event.title }}\n+News: {{ event.title }}\n", "+++ story@2 (draft)/locales/cy/subject\n", "-Hello {{ subscriber.address }}"} {
		if !strings.Contains(diff, line) {
			t.Errorf("%q is not in the difference\n%s", line, diff)
		}
	}
	if list := s.mustRun("", "template", "list", "--state", "draft"); !strings.Contains(list, "News: ") || strings.Contains(list, "near") {
		t.Errorf("the drafts are\n%s", list)
	}

	if mail := mailsOf("before"); !strings.Contains(mail, "this is before.") {
		t.Errorf("a draft has left:\n%s", mail)
	}
	const message = `{"channel":"email","to":"bob@example.org","template":"story@draft","data":{"title":"direct"}}`
	if got := s.http.refused(422, "POST", "/v1/messages", plain, message); got.Pointer != "/template" || !strings.Contains(got.Hint, "publish") {
		t.Errorf("a message of a draft is refused with %+v", got)
	}
	s.http.must(200, "POST", "/v1/dry-run/messages", plain, message)
	if got := s.http.refused(422, "POST", "/v1/dry-run/messages", plain, strings.Replace(message, "title", "titel", 1)); !strings.Contains(got.Detail, "story@2") {
		t.Errorf("trying a draft is refused with %+v", got)
	}
	if run := into[client.DryRun](t, s.http.must(200, "POST", "/v1/topics/story/match", plain, `{"title":"x"}`)); run.Messages != 1 {
		t.Errorf("a dry run beside a draft says %+v", run)
	}

	s.http.must(204, "POST", "/v1/pause", plain, `{"scope":{"kind":"channel","name":"news/email"}}`)
	pinned := s.http.publish(`{"title":"pinned"}`)
	s.frozen(pinned)
	if said := s.mustRun("", "template", "publish", "story"); said != "template story: published version 2\n" {
		t.Errorf("publishing says %q", said)
	}
	s.http.must(204, "POST", "/v1/resume", plain, `{"scope":{"kind":"channel","name":"news/email"}}`)
	s.http.completed(pinned)
	if mails := r.of("ada@example.org"); !strings.Contains(mails[len(mails)-1], "this is pinned.") {
		t.Errorf("what was under way has another version now:\n%s", mails[len(mails)-1])
	}
	if mail := mailsOf("after"); !strings.Contains(mail, "There is after!!") || !strings.Contains(mail, "Subject: News: after") {
		t.Errorf("after publishing:\n%s", mail)
	}
	s.http.must(201, "POST", "/v1/messages?wait=30s", plain, strings.Replace(message, "@draft", "", 1))
	if mail := r.one("bob@example.org"); !strings.Contains(mail, "There is direct!!") {
		t.Errorf("a message after publishing:\n%s", mail)
	}

	if said := s.mustRun("", "template", "publish", "story", "--version", "1", "--note", "too loud"); said != "template story: published version 1\n" {
		t.Errorf("going back says %q", said)
	}
	if mail := mailsOf("back"); !strings.Contains(mail, "this is back.") {
		t.Errorf("after going back:\n%s", mail)
	}
	versions := strings.Split(strings.TrimSpace(s.mustRun("", "template", "versions", "story")), "\n")
	if len(versions) != 3 || !strings.Contains(versions[1], "published") || !strings.Contains(versions[1], "too loud") || !strings.Contains(versions[2], "earlier") || !strings.Contains(versions[2], "as people say it") {
		t.Errorf("the versions are\n%s", strings.Join(versions, "\n"))
	}
	if last := s.mustRun("", "template", "diff", "story"); !strings.Contains(last, "--- story@2/subject\n+++ story@1/subject\n") {
		t.Errorf("what the last publication has changed:\n%s", last)
	}
	if same := s.mustRun("", "template", "diff", "story", "1", "published"); same != "version 1 and version 1 of template story are identical\n" {
		t.Errorf("no difference is %q", same)
	}
	if audit := s.mustRun("", "audit", "--kind", "template"); strings.Count(audit, "publish") != 2 || strings.Contains(audit, "There is") {
		t.Errorf("the audit has\n%s", audit)
	}
}

// Two people who have the same draft or publication in their hands do not undo each
// other's work unseen, and who applies a document is told of a draft.
func TestADraftIsKeptAndPublishedUnderPreconditions(t *testing.T) {
	t.Parallel()
	s, _ := newsroom(t, sink.Config{}, "")
	const path, body = "/v1/templates/story/draft", `{"subject":"s","text":"mine"}`
	s.http.must(201, "PUT", path, plain, body, "If-None-Match", "*")
	s.http.refused(412, "PUT", path, plain, body, "If-None-Match", "*")
	_, first, header := s.http.send("GET", path, "", "")
	s.http.must(200, "PUT", path, plain, `{"subject":"s","text":"mine, again"}`, "If-Match", header.Get("ETag"))
	s.http.refused(412, "PUT", path, plain, body, "If-Match", header.Get("ETag"))
	s.http.refused(412, "DELETE", path, "", "", "If-Match", header.Get("ETag"))
	if draft := into[client.Template](t, first); draft.State != "draft" || draft.Version != 2 || draft.Base != 1 || draft.At.IsZero() || draft.Key == "" {
		t.Errorf("the draft is shown as %s", first)
	}
	s.http.must(200, "PUT", path, plain, first) // what is shown can be put
	_, _, header = s.http.send("GET", path, "", "")
	s.http.must(304, "GET", path, "", "", "If-None-Match", header.Get("ETag"))

	_, _, header = s.http.send("GET", "/v1/templates/story", "", "")
	s.http.must(200, "PUT", "/v1/templates/story", plain, `{"subject":"s","text":"theirs","note":"in a hurry"}`, "If-Match", header.Get("ETag"))
	s.http.refused(412, "POST", "/v1/templates/story/publish", plain, `{}`, "If-Match", header.Get("ETag"))
	if got := s.http.refused(409, "POST", "/v1/templates/story/publish", plain, `{}`); !strings.Contains(got.Detail, "version 3 was published after") {
		t.Errorf("a draft of before is refused with %+v", got)
	}
	document := write(t, "story.yaml", "service: news\ntemplates:\n  story: {subject: s, text: theirs}\n")
	if said := s.mustRun("", "apply", "-f", document); !strings.Contains(said, "! template story has a draft (version 2)") || !strings.Contains(said, "no changes") {
		t.Errorf("applying beside a draft says %s", said)
	}
	s.http.must(200, "PUT", path, plain, body)
	s.http.must(200, "POST", "/v1/templates/story/publish", plain, `{"version":4}`)
	s.http.must(200, "POST", "/v1/templates/story/publish", plain, `{"version":4}`)
	for text, status := range map[string]int{`{}`: 409, `{"version":2}`: 422, `{"version":-1}`: 422, `{"note":"a\nb"}`: 422, `{"version":"4"}`: 422} {
		s.http.refused(status, "POST", "/v1/templates/story/publish", plain, text)
	}
	s.http.refused(404, "POST", "/v1/templates/none/publish", plain, `{}`)
	s.http.refused(404, "GET", "/v1/templates/none/diff", "", "")
	s.http.refused(422, "GET", "/v1/templates/story/diff?from=draft", "", "")
	s.http.refused(422, "POST", "/v1/templates/story/preview", plain, `{"draft":true}`)
	s.http.refused(422, "POST", "/v1/templates/story/preview", plain, `{"draft":true,"version":1}`)
}
