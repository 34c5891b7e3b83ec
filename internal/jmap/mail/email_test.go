package mail_test

import (
	"fmt"
	"strings"
	"testing"

	"fanfare.dev/fanfare/internal/mailbox"
)

// nested is a message with an alternative, an inline image, an attachment and a message.
var nested = strings.ReplaceAll(`From: "Joe Bloggs" <joe@example.com>
To: Friends: ann@example.org, bob@example.org;, =?utf-8?Q?J=C3=BCrgen?= <j@example.org>
Subject: =?utf-8?Q?D=C3=ADnner?=
Date: Thu, 30 Oct 2014 14:12:00 +0800
Message-ID: <abc@example.com>
References: <a@b> <c@d>
List-Post: <mailto:list@example.com>
X-Note: one
X-Note: two
MIME-Version: 1.0
Content-Type: multipart/mixed; boundary=m

--m
Content-Type: multipart/related; boundary=r

--r
Content-Type: multipart/alternative; boundary=a

--a
Content-Type: text/plain; charset=iso-8859-1
Content-Transfer-Encoding: quoted-printable

Gr=FC=DFe
zweite Zeile
--a
Content-Type: text/html; charset=utf-8
Content-Language: de, en

<style>p{}</style><p>Grüße &amp; <b>mehr</b></p>
--a--
--r
Content-Type: image/png; name=logo.png
Content-Disposition: inline
Content-ID: <logo@x>
Content-Transfer-Encoding: base64

iVBORw0KGgo=
--r--
--m
Content-Type: application/pdf
Content-Disposition: ATTACHMENT; filename*=utf-8''b%C3%A4r.pdf
Content-Transfer-Encoding: base64

JVBERg==
--m
Content-Type: message/rfc822

Subject: inner
Content-Type: multipart/mixed; boundary=i

--i

inner text
--i
Content-Type: application/x-data

inner data
--i--
--m--
`, "\n", "\r\n")

func TestRFC8621Section41EmailsHaveTheirProperties(t *testing.T) {
	w := newWorld(t)
	w.add(1, nested)
	w.call("Email/set", `{"update":{"M1":{"keywords":{"$seen":true,"$flagged":true,"Note":true}}}}`)
	for property, want := range map[string]string{
		"id": `"M1"`, "threadId": `"T1"`, "blobId": `"E1"`, "mailboxIds": `{"B1":true}`, "keywords": `{"$flagged":true,"$seen":true,"note":true}`,
		"size": fmt.Sprint(len(nested)), "receivedAt": `"2026-11-27T12:00:00Z"`, "messageId": `["abc@example.com"]`, "inReplyTo": `null`, "references": `["a@b","c@d"]`,
		"sender": `null`, "from": `[{"email":"joe@example.com","name":"Joe Bloggs"}]`, "cc": `null`, "subject": `"Dínner"`, "sentAt": `"2014-10-30T14:12:00+08:00"`,
		"to":            `[{"email":"ann@example.org","name":null},{"email":"bob@example.org","name":null},{"email":"j@example.org","name":"Jürgen"}]`,
		"hasAttachment": `true`, "preview": `"Grüße zweite Zeile"`, "bodyValues": `{}`,
		"header:X-Note": `" two"`, "header:X-Note:all": `[" one"," two"]`, "header:x-note:asText": `"two"`, "header:None:all": `[]`, "header:None": `null`,
		"header:To:asGroupedAddresses": `[{"addresses":[{"email":"ann@example.org","name":null},{"email":"bob@example.org","name":null}],"name":"Friends"},{"addresses":[{"email":"j@example.org","name":"Jürgen"}],"name":null}]`,
		"header:List-Post:asURLs":      `["mailto:list@example.com"]`, "header:Date:asDate": `"2014-10-30T14:12:00+08:00"`, "header:References:asMessageIds:all": `[["a@b","c@d"]]`,
	} {
		w.same(property, w.get("M1", `,"properties":["`+property+`"]`)[property], want)
	}
	if all := w.get("M1", ``); len(all) != 24 || all["bodyStructure"] != nil || all["headers"] != nil {
		t.Errorf("the default properties are %s", text(all))
	}
	headers := w.get("M1", `,"properties":["headers"]`)["headers"].([]any)
	if len(headers) != 11 || text(headers[0]) != `{"name":"From","value":" \"Joe Bloggs\" \u003cjoe@example.com\u003e"}` {
		t.Errorf("headers: %s", text(headers))
	}
	for _, property := range []string{"colour", "header:", "header:From:asDate", "header:Date:asText", "header:Received:asText", "header:X:all:asText", "header:X:asNothing", "From"} {
		w.fails("Email/get", `{"ids":["M1"],"properties":["`+property+`"]}`, "invalidArguments")
	}
	w.fails("Email/get", `{"ids":["M1"],"bodyProperties":["from"]}`, "invalidArguments")
	w.same("unknown", w.call("Email/get", `{"ids":["M2","T1","M01"]}`)["notFound"], `["M2","T1","M01"]`)
}

func TestRFC8621Section414BodiesAreSplitIntoTextHTMLAndAttachments(t *testing.T) {
	w := newWorld(t)
	w.add(1, nested)
	e := w.get("M1", `,"properties":["textBody","htmlBody","attachments","bodyValues"],"bodyProperties":["partId","type"],"fetchAllBodyValues":true`)
	w.same("textBody", e["textBody"], `[{"partId":"1","type":"text/plain"}]`)
	w.same("htmlBody", e["htmlBody"], `[{"partId":"2","type":"text/html"}]`)
	w.same("attachments", e["attachments"], `[{"partId":"3","type":"image/png"},{"partId":"4","type":"application/pdf"},{"partId":"5","type":"message/rfc822"}]`)
	w.same("bodyValues", e["bodyValues"], `{"1":{"isEncodingProblem":false,"isTruncated":false,"value":"Grüße\nzweite Zeile"},"2":{"isEncodingProblem":false,"isTruncated":false,"value":"\u003cstyle\u003ep{}\u003c/style\u003e\u003cp\u003eGrüße \u0026amp; \u003cb\u003emehr\u003c/b\u003e\u003c/p\u003e"}}`)
	w.same("only HTML, truncated", w.get("M1", `,"properties":["bodyValues"],"fetchHTMLBodyValues":true,"maxBodyValueBytes":26`)["bodyValues"], `{"2":{"isEncodingProblem":false,"isTruncated":true,"value":"\u003cstyle\u003ep{}\u003c/style\u003e\u003cp\u003eGrü"}}`)
	w.same("not inside of a tag", w.get("M1", `,"properties":["bodyValues"],"fetchHTMLBodyValues":true,"maxBodyValueBytes":15`)["bodyValues"].(object)["2"].(object)["value"], `"\u003cstyle\u003ep{}"`)
	w.same("not inside of a character", w.get("M1", `,"properties":["bodyValues"],"fetchTextBodyValues":true,"maxBodyValueBytes":3`)["bodyValues"].(object)["1"].(object)["value"], `"Gr"`)

	e = w.get("M1", `,"properties":["bodyStructure"],"bodyProperties":["partId","blobId","size","name","type","charset","disposition","cid","language","header:Content-ID"]`)
	part := func(path ...int) object {
		p := e["bodyStructure"].(object)
		for _, i := range path {
			p = p["subParts"].([]any)[i].(object)
		}
		delete(p, "subParts")
		return p
	}
	w.same("text", part(0, 0, 0), `{"blobId":"E1-1","charset":"iso-8859-1","cid":null,"disposition":null,"header:Content-ID":null,"language":null,"name":null,"partId":"1","size":19,"type":"text/plain"}`)
	w.same("HTML", part(0, 0, 1)["language"], `["de","en"]`)
	w.same("image", part(0, 1), `{"blobId":"E1-3","charset":null,"cid":"logo@x","disposition":"inline","header:Content-ID":" \u003clogo@x\u003e","language":null,"name":"logo.png","partId":"3","size":8,"type":"image/png"}`)
	w.same("file", part(1), `{"blobId":"E1-4","charset":null,"cid":null,"disposition":"attachment","header:Content-ID":null,"language":null,"name":"bär.pdf","partId":"4","size":4,"type":"application/pdf"}`)
	w.same("message", part(2)["partId"], `"5"`)
	w.same("multipart", part(0)["partId"], `null`)
	w.same("root", part()["type"], `"multipart/mixed"`)

	for id, want := range map[string]string{"E1": nested, "E1-1": "Gr\xfc\xdfe\r\nzweite Zeile", "E1-4": "%PDF", "E1-5-2": "inner data"} {
		data, err := w.methods.Blob(t.Context(), w.id, "a")
		if err == nil {
			t.Errorf("the blob a is %q", data)
		}
		if data, err = w.methods.Blob(t.Context(), w.id, coreID(id)); err != nil || string(data) != want {
			t.Errorf("blob %s: got %q, %v", id, data, err)
		}
	}
	for _, id := range []string{"E2", "E1-6", "E1-0", "E1-01", "E1-1-2", "C1", "E1-", "E1-1-1-1-1-1-1-1-1-1-1-1"} {
		if data, err := w.methods.Blob(t.Context(), w.id, coreID(id)); err == nil {
			t.Errorf("the blob %s is %q", id, data)
		}
	}
	if _, err := w.store.Create(t.Context(), mailbox.Owner{ID: 8, Service: "press", Address: "eve@example.org"}); err != nil {
		t.Fatal(err)
	}
	if data, err := w.methods.Blob(t.Context(), 8, "E1"); err == nil {
		t.Errorf("another account reads %q", data)
	}
}

func TestRFC8621Section411DeletedMessagesDoNotExist(t *testing.T) {
	w := newWorld(t)
	w.add(1, message("a", "x", "Message-ID: <1@x>"))
	w.add(1, message("a", "x", "References: <1@x>"))
	before := w.state()
	if _, _, err := w.store.UpdateFlags(t.Context(), w.id, []mailbox.FlagChange{{Emails: []mailbox.EmailID{1}, Mode: mailbox.AddFlags, Flags: mailbox.Deleted}}); err != nil {
		t.Fatal(err)
	}
	w.same("Email/get", w.call("Email/get", `{"ids":["M1","M2"],"properties":["id"]}`)["list"], `[{"id":"M2"}]`)
	w.same("Email/query", w.call("Email/query", `{}`)["ids"], `["M2"]`)
	w.same("Thread/get", w.call("Thread/get", `{"ids":["T1"]}`)["list"], `[{"emailIds":["M2"],"id":"T1"}]`)
	w.same("Mailbox/get", w.call("Mailbox/get", `{"ids":["B1"],"properties":["totalEmails","unreadEmails","totalThreads"]}`)["list"], `[{"id":"B1","totalEmails":1,"totalThreads":1,"unreadEmails":1}]`)
	w.same("Email/changes", w.call("Email/changes", `{"sinceState":"`+before+`"}`)["destroyed"], `["M1"]`)
	w.same("Email/set", w.call("Email/set", `{"destroy":["M1"]}`)["notDestroyed"], `{"M1":{"type":"notFound"}}`)
	if data, err := w.methods.Blob(t.Context(), w.id, "E1"); err == nil {
		t.Errorf("its blob is %q", data)
	}
}

func TestRFC8621Section44MessagesAreFiltered(t *testing.T) {
	w := newWorld(t)
	w.add(1, nested)                                                                                                             // M1 12:00
	w.add(1, message("Lunch menu", "soup and salad", "From: chef@example.org", "Message-ID: <2@x>"))                             // M2 12:01
	w.add(3, message("Re: Lunch menu", "Thanks, Käse too", "From: ann@example.org", "Cc: bob@example.org", "References: <2@x>")) // M3 12:02
	w.add(1, message("other", strings.Repeat("x", 5000), "Bcc: secret@example.org"))                                             // M4 12:03
	w.call("Email/set", `{"update":{"M2":{"keywords":{"$seen":true,"work":true}},"M4":{"keywords":{"$seen":true}}}}`)
	for filter, want := range map[string]string{
		`{}`: "1 2 3 4", `{"inMailbox":"B1"}`: "1 2 4", `{"inMailbox":"B99"}`: "", `{"inMailboxOtherThan":["B1"]}`: "3", `{"inMailboxOtherThan":[]}`: "1 2 3 4",
		`{"before":"2026-11-27T12:02:00Z"}`: "1 2", `{"after":"2026-11-27T12:02:00Z"}`: "3 4", `{"minSize":1000}`: "1 4", `{"maxSize":1000}`: "2 3",
		`{"hasKeyword":"$seen"}`: "2 4", `{"notKeyword":"$SEEN"}`: "1 3", `{"hasKeyword":"WORK"}`: "2",
		`{"allInThreadHaveKeyword":"$seen"}`: "4", `{"someInThreadHaveKeyword":"$seen"}`: "2 3 4", `{"noneInThreadHaveKeyword":"$seen"}`: "1",
		`{"hasAttachment":true}`: "1", `{"hasAttachment":false}`: "2 3 4",
		`{"from":"CHEF"}`: "2", `{"to":"jürgen"}`: "1", `{"cc":"bob"}`: "3", `{"bcc":"secret"}`: "4", `{"subject":"lunch"}`: "2 3", `{"subject":"menu lunch"}`: "2 3",
		`{"subject":"\"menu lunch\""}`: "", `{"subject":"\"lunch menu\""}`: "2 3", `{"body":"käse"}`: "3", `{"body":"grüße"}`: "1", `{"body":"mehr"}`: "1", `{"body":"style"}`: "",
		`{"text":"salad"}`: "2", `{"text":"bob"}`: "1 3", `{"text":"lunch thanks"}`: "3", `{"header":["References"]}`: "1 3", `{"header":["X-Note","ONE"]}`: "1", `{"header":["X-Note","three"]}`: "",
		`{"operator":"OR","conditions":[{"from":"chef"},{"operator":"NOT","conditions":[{"inMailbox":"B1"}]}]}`: "2 3",
		`{"inMailbox":"B1","hasKeyword":"$seen","minSize":1000}`:                                                "4",
	} {
		var got []string
		for _, id := range w.call("Email/query", `{"filter":`+filter+`}`)["ids"].([]any) {
			got = append(got, strings.TrimPrefix(id.(string), "M"))
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%s: got %v, want %s", filter, got, want)
		}
	}
	w.fails("Email/query", `{"filter":{"colour":"red"}}`, "unsupportedFilter")
	w.fails("Email/query", `{"filter":{"before":"yesterday"}}`, "invalidArguments")
	w.fails("Email/query", `{"filter":{"header":[]}}`, "invalidArguments")
}

func TestRFC8621Section442MessagesAreSorted(t *testing.T) {
	w := newWorld(t)
	w.add(1, message("Re: beta", "x", "From: Zoe <a@x>", "Message-ID: <1@x>", "Date: Thu, 30 Oct 2014 14:12:00 +0000"))
	w.add(1, message("alpha", strings.Repeat("x", 100), "From: b@x", "To: q@x", "Date: Thu, 30 Oct 2013 14:12:00 +0000"))
	w.add(1, message("Beta", "x", "From: adam <c@x>", "To: P <z@x>", "References: <1@x>"))
	w.call("Email/set", `{"update":{"M2":{"keywords":{"$flagged":true}},"M3":{"keywords":{"$seen":true}}}}`)
	for sort, want := range map[string]string{
		`{"property":"receivedAt"}`: "M1 M2 M3", `{"property":"receivedAt","isAscending":false}`: "M3 M2 M1", `{"property":"size","isAscending":false},{"property":"receivedAt","isAscending":false}`: "M2 M1 M3",
		`{"property":"from"}`: "M3 M2 M1", `{"property":"from","collation":"i;octet"}`: "M1 M3 M2", `{"property":"to"}`: "M1 M3 M2", `{"property":"subject"}`: "M2 M1 M3",
		`{"property":"sentAt"}`: "M2 M1 M3", `{"property":"hasKeyword","keyword":"$flagged","isAscending":false},{"property":"receivedAt"}`: "M2 M1 M3",
		`{"property":"someInThreadHaveKeyword","keyword":"$seen","isAscending":false},{"property":"receivedAt"}`: "M1 M3 M2", `{"property":"allInThreadHaveKeyword","keyword":"$seen"}`: "M1 M2 M3",
	} {
		var got []string
		for _, id := range w.call("Email/query", `{"sort":[`+sort+`]}`)["ids"].([]any) {
			got = append(got, id.(string))
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%s: got %v, want %s", sort, got, want)
		}
	}
	result := w.call("Email/query", `{"sort":[{"property":"receivedAt","isAscending":false}],"collapseThreads":true,"calculateTotal":true,"limit":1,"position":1}`)
	w.same("collapsed", []any{result["ids"], result["total"], result["position"], result["collapseThreads"], result["canCalculateChanges"]}, `[["M2"],2,1,true,true]`)
	w.fails("Email/query", `{"sort":[{"property":"colour"}]}`, "unsupportedSort")
	w.fails("Email/query", `{"sort":[{"property":"hasKeyword"}]}`, "invalidArguments")
	w.same("by reference", w.request(`[["Email/query",{"accountId":"a7","filter":{"hasKeyword":"$flagged"}},"q"],["Email/get",{"accountId":"a7","#ids":{"resultOf":"q","name":"Email/query","path":"/ids"},"properties":["threadId"]},"g"],["Thread/get",{"accountId":"a7","#ids":{"resultOf":"g","name":"Email/get","path":"/list/*/threadId"}},"t"]]`)[2][1].(object)["list"], `[{"emailIds":["M2"],"id":"T2"}]`)
}

func TestRFC8621Section5SnippetsMarkTheWords(t *testing.T) {
	w := newWorld(t)
	w.add(1, message("Lunch <b> Menü", strings.Repeat("before ", 60)+"SOUP & salad"+strings.Repeat(" after", 60)))
	result := w.call("SearchSnippet/get", `{"filter":{"operator":"OR","conditions":[{"text":"menü"},{"body":"soup"}]},"emailIds":["M1","M9"]}`)
	s := result["list"].([]any)[0].(object)
	w.same("subject", s["subject"], `"Lunch \u0026lt;b\u0026gt; \u003cmark\u003eMenü\u003c/mark\u003e"`)
	preview := s["preview"].(string)
	if !strings.Contains(strings.ToLower(preview), "<mark>soup</mark> &amp; salad") || len(preview) > 255 {
		t.Errorf("preview %q", preview)
	}
	w.same("not found", result["notFound"], `["M9"]`)
	w.same("no match", w.call("SearchSnippet/get", `{"filter":{"hasKeyword":"x"},"emailIds":["M1"]}`)["list"], `[{"emailId":"M1","preview":null,"subject":null}]`)
}

func TestHostileMessagesAreRead(t *testing.T) {
	w := newWorld(t)
	head := "Subject: x\r\nMIME-Version: 1.0\r\n"
	many := head + "Content-Type: multipart/mixed; boundary=b\r\n\r\n" + strings.Repeat("--b\r\nContent-Type: text/plain\r\n\r\nx\r\n", 20_000) + "--b--\r\n"
	deep := head
	for i := range 500 {
		deep += fmt.Sprintf("Content-Type: multipart/mixed; boundary=b%d\r\n\r\n--b%d\r\n", i, i)
	}
	addresses := head + "To: " + strings.Repeat("a@b.c,", 200_000) + "\r\n\r\n"
	fields := head + strings.Repeat("X: y\r\n", 100_000) + "\r\n"
	angles := head + "From: " + strings.Repeat("<", 100_000) + strings.Repeat("(", 100_000) + strings.Repeat("=?utf-8?Q?", 20_000) + "\r\n\r\n"
	tags := head + "Content-Type: text/html\r\n\r\n" + strings.Repeat("<div><style>", 100_000)
	for name, content := range map[string]string{"many parts": many, "deep": deep, "addresses": addresses, "fields": fields, "angles": angles, "tags": tags} {
		id := w.add(1, content)
		kind, result := w.try("Email/get", `{"ids":["`+id+`"],"properties":["bodyStructure","textBody","bodyValues","headers","from","to","preview","header:X:all"],"fetchAllBodyValues":true,"maxBodyValueBytes":100}`)
		if kind == "error" && result["type"] != "requestTooLarge" {
			t.Errorf("%s: %s", name, text(result))
		}
	}
	w.call("Email/query", `{"filter":{"text":"absent"},"sort":[{"property":"from"},{"property":"subject"}]}`)
	properties := strings.TrimSuffix(strings.Repeat(`"header:X",`, 201), ",")
	w.fails("Email/get", `{"ids":[],"properties":[`+properties+`]}`, "invalidArguments")
}
