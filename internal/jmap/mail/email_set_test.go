package mail_test

import (
	"strings"
	"testing"

	"fanfare.dev/fanfare/internal/jmap/core"
	"fanfare.dev/fanfare/internal/mailbox"
)

func coreID(id string) core.ID { return core.ID(id) }

// created makes a message and returns its id.
func (w *world) created(record string) string {
	w.Helper()
	result := w.call("Email/set", `{"create":{"k":`+record+`}}`)
	if result["notCreated"] != nil {
		w.Fatalf("%s: %s", record, text(result["notCreated"]))
	}
	made := result["created"].(object)["k"].(object)
	if made["blobId"] == nil || made["threadId"] == nil || made["size"] == nil {
		w.Errorf("created %s", text(made))
	}
	return made["id"].(string)
}

func TestRFC8621Section46MessagesAreCreated(t *testing.T) {
	w := newWorld(t)
	file := w.upload("\x00\x01\xff")
	id := w.created(`{"mailboxIds":{"B2":true},"keywords":{"$draft":true,"$seen":true},"receivedAt":"2014-10-30T06:12:00Z","from":[{"name":"Joe \"B\"","email":"joe@example.com"}],"to":[{"name":"Jürgen","email":"j@example.org"}],
		"subject":"Wörld domination","header:X-Note:asText":"ü","header:X-Raw":" raw value","header:X-Two:all":["1","2"],"references":["a@b","c@d"],
		"textBody":[{"partId":"t","type":"text/plain"}],"htmlBody":[{"partId":"h","type":"text/html"}],
		"attachments":[{"blobId":"` + file + `","type":"image/png","name":"ü.png","disposition":"inline","cid":"img@x"},{"blobId":"` + file + `","type":"application/x-data","name":"data"}],
		"bodyValues":{"t":{"value":"I have the most brilliant plan.\nÜber"},"h":{"value":"<p>plan</p>","isTruncated":false}}}`)
	e := w.get(id, `,"fetchAllBodyValues":true,"bodyProperties":["type","name","cid","disposition","blobId"]`)
	for property, want := range map[string]string{
		"mailboxIds": `{"B2":true}`, "keywords": `{"$draft":true,"$seen":true}`, "receivedAt": `"2014-10-30T06:12:00Z"`, "from": `[{"email":"joe@example.com","name":"Joe \"B\""}]`,
		"to": `[{"email":"j@example.org","name":"Jürgen"}]`, "subject": `"Wörld domination"`, "references": `["a@b","c@d"]`, "sentAt": `"2026-11-27T12:00:00Z"`, "hasAttachment": `true`,
		"preview": `"I have the most brilliant plan. Über"`,
	} {
		w.same(property, e[property], want)
	}
	values := e["bodyValues"].(object)
	w.same("text", values["1"].(object)["value"], `"I have the most brilliant plan.\nÜber"`)
	w.same("HTML", values["2"].(object)["value"], `"\u003cp\u003eplan\u003c/p\u003e"`)
	attachments := e["attachments"].([]any)
	if len(attachments) != 2 || text(attachments[0].(object)["name"]) != `"ü.png"` || text(attachments[0].(object)["cid"]) != `"img@x"` || text(attachments[1].(object)["disposition"]) != `"attachment"` {
		t.Errorf("attachments %s", text(attachments))
	}
	data, err := w.methods.Blob(t.Context(), w.id, coreID(attachments[1].(object)["blobId"].(string)))
	if err != nil || string(data) != "\x00\x01\xff" {
		t.Errorf("the attachment is %q, %v", data, err)
	}
	fields := w.get(id, `,"properties":["header:X-Note:asText","header:X-Raw","header:X-Two:all","header:MIME-Version:all","header:Message-ID:asMessageIds"]`)
	w.same("fields", []any{fields["header:X-Note:asText"], fields["header:X-Raw"], fields["header:X-Two:all"], fields["header:MIME-Version:all"]}, `["ü"," raw value",[" 1"," 2"],[" 1.0"]]`)
	if ids := text(fields["header:Message-ID:asMessageIds"]); !strings.HasSuffix(ids, `@example.org"]`) {
		t.Errorf("Message-ID %s", ids)
	}
	if e["threadId"].(string) != "T"+strings.TrimPrefix(id, "M") {
		t.Errorf("thread %v", e["threadId"])
	}
}

func TestRFC8621Section46BodyStructuresAreKept(t *testing.T) {
	w := newWorld(t)
	inner := w.upload(message("inner", "x"))
	id := w.created(`{"mailboxIds":{"B1":true},"header:Comments":"kept","bodyStructure":{"type":"multipart/mixed","header:X-Root":"r","subParts":[
		{"type":"text/plain","partId":"p","header:X-Part":"s","language":["en","de"]},{"type":"multipart/alternative","subParts":[{"type":"text/html","partId":"q"}]},{"type":"message/rfc822","blobId":"` + inner + `"}]},
		"bodyValues":{"p":{"value":"one"},"q":{"value":"two"}}}`)
	e := w.get(id, `,"properties":["bodyStructure","header:X-Root:asText","header:Comments:asText"],"bodyProperties":["type","header:X-Part:asText","language"]`)
	w.same("structure", e["bodyStructure"], `{"header:X-Part:asText":null,"language":null,"subParts":[{"header:X-Part:asText":"s","language":["en","de"],"type":"text/plain"},`+
		`{"header:X-Part:asText":null,"language":null,"subParts":[{"header:X-Part:asText":null,"language":null,"type":"text/html"}],"type":"multipart/alternative"},{"header:X-Part:asText":null,"language":null,"type":"message/rfc822"}],"type":"multipart/mixed"}`)
	w.same("fields", []any{e["header:X-Root:asText"], e["header:Comments:asText"]}, `["r","kept"]`)
	parsed := w.call("Email/parse", `{"blobIds":["E1-3"],"properties":["subject","id","blobId","preview"]}`)["parsed"]
	w.same("the inner message", parsed, `{"E1-3":{"blobId":"E1-3","id":null,"preview":"x","subject":"inner"}}`)
}

func TestRFC8621Section46WrongRecordsAreRefused(t *testing.T) {
	w := newWorld(t)
	for record, want := range map[string]string{
		`{}`:                                   "invalidProperties",
		`{"mailboxIds":{}}`:                    "invalidProperties",
		`{"mailboxIds":{"B1":false}}`:          "invalidProperties",
		`{"mailboxIds":{"B99":true}}`:          "invalidProperties",
		`{"mailboxIds":{"#x":true}}`:           "invalidProperties",
		`{"mailboxIds":{"B1":true,"B2":true}}`: "tooManyMailboxes",
		`{"mailboxIds":{"B1":true},"keywords":{"a b":true}}`:                                                                                  "invalidProperties",
		`{"mailboxIds":{"B1":true},"keywords":{"a":false}}`:                                                                                   "invalidProperties",
		`{"mailboxIds":{"B1":true},"headers":[]}`:                                                                                             "invalidProperties",
		`{"mailboxIds":{"B1":true},"id":"M9"}`:                                                                                                "invalidProperties",
		`{"mailboxIds":{"B1":true},"subject":5}`:                                                                                              "invalidProperties",
		`{"mailboxIds":{"B1":true},"subject":"a","header:Subject":"b"}`:                                                                       "invalidProperties",
		`{"mailboxIds":{"B1":true},"header:X":"a\r\nBcc: b@x"}`:                                                                               "invalidProperties",
		`{"mailboxIds":{"B1":true},"header:X Y":"a"}`:                                                                                         "invalidProperties",
		`{"mailboxIds":{"B1":true},"header:Content-Type":"text/html"}`:                                                                        "invalidProperties",
		`{"mailboxIds":{"B1":true},"header:From:asDate":"2014-10-30T06:12:00Z"}`:                                                              "invalidProperties",
		`{"mailboxIds":{"B1":true},"from":[{"email":"a@x>\r\nBcc: <b@x"}]}`:                                                                   "invalidProperties",
		`{"mailboxIds":{"B1":true},"textBody":[{"partId":"t"}]}`:                                                                              "invalidProperties",
		`{"mailboxIds":{"B1":true},"textBody":[{"partId":"t","charset":"utf-8"}],"bodyValues":{"t":{"value":""}}}`:                            "invalidProperties",
		`{"mailboxIds":{"B1":true},"textBody":[{"partId":"t","type":"text/html"}],"bodyValues":{"t":{"value":""}}}`:                           "invalidProperties",
		`{"mailboxIds":{"B1":true},"textBody":[{"partId":"t"},{"partId":"t"}],"bodyValues":{"t":{"value":""}}}`:                               "invalidProperties",
		`{"mailboxIds":{"B1":true},"textBody":[{"partId":"t"}],"bodyValues":{"t":{"value":"","isTruncated":true}}}`:                           "invalidProperties",
		`{"mailboxIds":{"B1":true},"bodyStructure":{"partId":"t"},"textBody":[],"bodyValues":{"t":{"value":""}}}`:                             "invalidProperties",
		`{"mailboxIds":{"B1":true},"bodyStructure":{"partId":"t","header:Content-Transfer-Encoding":"8bit"},"bodyValues":{"t":{"value":""}}}`: "invalidProperties",
		`{"mailboxIds":{"B1":true},"subject":"x","bodyStructure":{"partId":"t","header:Subject":"y"},"bodyValues":{"t":{"value":""}}}`:        "invalidProperties",
		`{"mailboxIds":{"B1":true},"bodyStructure":{"partId":"t","type":"text/plain; x"},"bodyValues":{"t":{"value":""}}}`:                    "invalidProperties",
		`{"mailboxIds":{"B1":true},"bodyStructure":{"type":"multipart/mixed"}}`:                                                               "invalidProperties",
		`{"mailboxIds":{"B1":true},"bodyStructure":{"partId":"t","blobId":"C1"},"bodyValues":{"t":{"value":""}}}`:                             "invalidProperties",
		`{"mailboxIds":{"B1":true},"attachments":[{"blobId":"C99"}]}`:                                                                         "blobNotFound",
	} {
		result := w.call("Email/set", `{"create":{"k":`+record+`}}`)
		failed, ok := result["notCreated"].(object)
		if !ok || failed["k"].(object)["type"] != want {
			t.Errorf("%s: got %s", record, text(result))
		}
	}
	if ids := w.call("Email/query", `{}`)["ids"].([]any); len(ids) != 0 {
		t.Errorf("messages exist: %v", ids)
	}
}

func TestRFC8621Section46MessagesAreChanged(t *testing.T) {
	w := newWorld(t)
	w.add(1, message("a", "x"))
	w.add(1, message("b", "x"))
	keywords := func(id string) string { return text(w.get(id, `,"properties":["keywords","mailboxIds"]`)) }
	for _, step := range []struct{ patch, want string }{
		{`{"keywords/$seen":true,"keywords/x":true}`, `{"id":"M1","keywords":{"$seen":true,"x":true},"mailboxIds":{"B1":true}}`},
		{`{"keywords/$seen":null,"keywords/$Flagged":true}`, `{"id":"M1","keywords":{"$flagged":true,"x":true},"mailboxIds":{"B1":true}}`},
		{`{"keywords":{"y":true}}`, `{"id":"M1","keywords":{"y":true},"mailboxIds":{"B1":true}}`},
		{`{"mailboxIds/B1":null,"mailboxIds/B3":true}`, `{"id":"M1","keywords":{"y":true},"mailboxIds":{"B3":true}}`},
		{`{"mailboxIds":{"B4":true},"keywords":{}}`, `{"id":"M1","keywords":{},"mailboxIds":{"B4":true}}`},
		{`{}`, `{"id":"M1","keywords":{},"mailboxIds":{"B4":true}}`},
	} {
		w.same(step.patch, w.call("Email/set", `{"update":{"M1":`+step.patch+`}}`)["updated"], `{"M1":null}`)
		if got := keywords("M1"); got != step.want {
			t.Errorf("%s: got %s", step.patch, got)
		}
	}
	for patch, want := range map[string]string{
		`{"mailboxIds/B3":true}`: "tooManyMailboxes", `{"mailboxIds/B4":null}`: "invalidProperties", `{"mailboxIds":null}`: "invalidProperties", `{"mailboxIds":{"B99":true}}`: "invalidProperties",
		`{"subject":"y"}`: "invalidProperties", `{"keywords/a b":true}`: "invalidProperties", `{"keywords/x":false}`: "invalidProperties", `{"keywords/x/y":true}`: "invalidPatch",
		`{"keywords":{},"keywords/x":true}`: "invalidPatch", `{"mailboxIds/#none":true}`: "invalidProperties",
	} {
		if got := w.call("Email/set", `{"update":{"M1":`+patch+`}}`)["notUpdated"]; got == nil || got.(object)["M1"].(object)["type"] != want {
			t.Errorf("%s: got %s, want %s", patch, text(got), want)
		}
	}
	result := w.call("Email/set", `{"update":{"M9":{},"M2":{"keywords/z":true}},"destroy":["M2","M1","M8"]}`)
	w.same("not updated", result["notUpdated"], `{"M2":{"type":"willDestroy"},"M9":{"type":"notFound"}}`)
	w.same("destroyed", []any{result["destroyed"], result["notDestroyed"]}, `[["M2","M1"],{"M8":{"type":"notFound"}}]`)

	list := w.request(`[["Mailbox/set",{"accountId":"a7","create":{"box":{"name":"new"}}},"0"],["Email/set",{"accountId":"a7","create":{"mail":{"mailboxIds":{"#box":true},"subject":"s"}}},"1"],["Email/set",{"accountId":"a7","update":{"#mail":{"keywords/k":true}}},"2"],["Email/get",{"accountId":"a7","ids":["#mail"],"properties":["mailboxIds","keywords"]},"3"]]`)
	box := list[0][1].(object)["created"].(object)["box"].(object)["id"].(string)
	w.same("creation ids", list[3][1].(object)["list"].([]any)[0].(object)["mailboxIds"], `{"`+box+`":true}`)
	w.same("creation ids", list[3][1].(object)["list"].([]any)[0].(object)["keywords"], `{"k":true}`)
}

func TestRFC8621Section46MovedMessagesKeepTheirIDs(t *testing.T) {
	w := newWorld(t)
	w.add(1, message("a", "x"))
	before := w.state()
	w.call("Email/set", `{"update":{"M1":{"mailboxIds":{"B6":true}}}}`)
	changes := w.call("Email/changes", `{"sinceState":"`+before+`"}`)
	w.same("changes", []any{changes["created"], changes["updated"], changes["destroyed"]}, `[[],["M1"],[]]`)
	w.same("threads", w.call("Thread/changes", `{"sinceState":"`+before+`"}`)["updated"], `[]`)
	w.same("mailboxes", w.call("Mailbox/changes", `{"sinceState":"`+before+`"}`)["updated"], `["B1","B6"]`)
}

func TestRFC8621Section48MessagesAreImported(t *testing.T) {
	w := newWorld(t)
	blob := w.upload("Received: from x by y; Thu, 30 Oct 2014 14:12:00 +0800\nSubject: unix lines\n\nbody\n")
	result := w.call("Email/import", `{"emails":{"k":{"blobId":"`+blob+`","mailboxIds":{"B1":true},"keywords":{"$seen":true}},"l":{"blobId":"C99","mailboxIds":{"B1":true}},"m":{"blobId":"`+w.upload("no message")+`","mailboxIds":{"B1":true}},"n":{"blobId":"`+blob+`","mailboxIds":{}}}}`)
	id := result["created"].(object)["k"].(object)["id"].(string)
	e := w.get(id, `,"properties":["subject","receivedAt","keywords","size"]`)
	w.same("imported", e, `{"id":"M1","keywords":{"$seen":true},"receivedAt":"2014-10-30T06:12:00Z","size":85,"subject":"unix lines"}`)
	failed := result["notCreated"].(object)
	w.same("refused", []any{failed["l"].(object)["properties"], failed["m"].(object)["type"], failed["n"].(object)["properties"]}, `[["blobId"],"invalidEmail",["mailboxIds"]]`)
	w.fails("Email/import", `{"ifInState":"1","emails":{}}`, "stateMismatch")
	w.fails("Email/import", `{}`, "invalidArguments")
	// A message can be imported from the blob of another one.
	again := w.call("Email/import", `{"emails":{"k":{"blobId":"E1","mailboxIds":{"B1":true},"receivedAt":"2015-01-01T00:00:00Z"}}}`)
	w.same("again", w.get(again["created"].(object)["k"].(object)["id"].(string), `,"properties":["receivedAt"]`)["receivedAt"], `"2015-01-01T00:00:00Z"`)
}

func TestRFC8621Section49BlobsAreParsed(t *testing.T) {
	w := newWorld(t)
	blob, other := w.upload(nested), w.upload("no message")
	result := w.call("Email/parse", `{"blobIds":["`+blob+`","`+other+`","C99"],"properties":["subject","mailboxIds","attachments"],"bodyProperties":["blobId"]}`)
	w.same("parsed", result["parsed"], `{"`+blob+`":{"attachments":[{"blobId":"`+blob+`-3"},{"blobId":"`+blob+`-4"},{"blobId":"`+blob+`-5"}],"mailboxIds":null,"subject":"Dínner"}}`)
	w.same("not parsable", result["notParsable"], `["`+other+`"]`)
	w.same("not found", result["notFound"], `["C99"]`)
}

func TestRFC8621Section47ThereIsNoOtherAccountToCopyFrom(t *testing.T) {
	w := newWorld(t)
	w.fails("Email/copy", `{"fromAccountId":"a8","create":{}}`, "fromAccountNotFound")
	w.fails("Email/copy", `{"fromAccountId":"a7","create":{}}`, "invalidArguments")
	w.fails("Blob/copy", `{"fromAccountId":"a8","blobIds":["C1"]}`, "fromAccountNotFound")
}

func TestOtherAccountsAreNotReached(t *testing.T) {
	w := newWorld(t)
	if _, err := w.store.Create(t.Context(), mailbox.Owner{ID: 8, Service: "press", Address: "eve@example.org"}); err != nil {
		t.Fatal(err)
	}
	upload, err := w.methods.Upload(t.Context(), 8, []byte(message("secret", "x")))
	if err != nil {
		t.Fatal(err)
	}
	for _, call := range []string{`["Email/get",{"accountId":"a8","ids":null},"0"]`, `["Mailbox/set",{"accountId":"a8"},"0"]`, `["Email/get",{"accountId":"a07","ids":null},"0"]`} {
		if got := w.request("[" + call + "]")[0]; got[0] != "error" || got[1].(object)["type"] != "accountNotFound" {
			t.Errorf("%s: got %v", call, got)
		}
	}
	w.same("its upload", w.call("Email/parse", `{"blobIds":["`+string(upload)+`"]}`)["notFound"], `["`+string(upload)+`"]`)
}
