package mail_test

import (
	"strings"
	"testing"

	"fanfare.dev/fanfare/internal/mailbox"
)

func TestRFC8621Section2MailboxesHaveTheirProperties(t *testing.T) {
	w := newWorld(t)
	w.add(1, message("a", "x", "Message-ID: <1@x>"))
	seen := w.add(1, message("a", "x", "References: <1@x>"))
	w.call("Email/set", `{"update":{"`+seen+`":{"keywords/$seen":true}}}`)
	result := w.call("Mailbox/get", `{"ids":["B1","B99","x"]}`)
	w.same("not found", result["notFound"], `["B99","x"]`)
	box := result["list"].([]any)[0].(object)
	rights := box["myRights"].(object)
	delete(box, "myRights")
	w.same("inbox", box, `{"id":"B1","isSubscribed":true,"name":"INBOX","parentId":null,"role":"inbox","sortOrder":0,"totalEmails":2,"totalThreads":1,"unreadEmails":1,"unreadThreads":1}`)
	if rights["mayReadItems"] != true || rights["mayDelete"] != false || rights["mayRename"] != false || len(rights) != 9 {
		t.Errorf("rights %v", rights)
	}
	w.same("properties", w.call("Mailbox/get", `{"ids":["B1"],"properties":["name"]}`)["list"], `[{"id":"B1","name":"INBOX"}]`)
	w.fails("Mailbox/get", `{"properties":["colour"]}`, "invalidArguments")
	if all := w.call("Mailbox/get", `{"ids":null}`)["list"].([]any); len(all) != 6 {
		t.Errorf("%d mailboxes", len(all))
	}
}

func TestRFC8621Section2ThreadsInTheTrashCountApart(t *testing.T) {
	w := newWorld(t)
	trash := w.call("Mailbox/query", `{"filter":{"role":"trash"}}`)["ids"].([]any)[0].(string)
	w.add(1, message("a", "x", "Message-ID: <1@x>"))
	second := w.add(1, message("a", "x", "References: <1@x>"))
	w.call("Email/set", `{"update":{"M1":{"keywords":{"$seen":true}},"`+second+`":{"mailboxIds":{"`+trash+`":true}}}}`)
	counts := w.call("Mailbox/get", `{"ids":["B1","`+trash+`"],"properties":["totalThreads","unreadThreads"]}`)["list"]
	w.same("counts", counts, `[{"id":"B1","totalThreads":1,"unreadThreads":0},{"id":"`+trash+`","totalThreads":1,"unreadThreads":1}]`)
}

func TestRFC8621Section23MailboxesAreFilteredAndSorted(t *testing.T) {
	w := newWorld(t)
	w.call("Mailbox/set", `{"create":{"z":{"name":"zeta"},"c":{"name":"child","parentId":"#z","sortOrder":5},"e":{"name":"Echo","isSubscribed":true}}}`)
	names := func(arguments string) string {
		var list []string
		for _, id := range w.call("Mailbox/query", arguments)["ids"].([]any) {
			list = append(list, w.call("Mailbox/get", `{"ids":["`+id.(string)+`"],"properties":["name"]}`)["list"].([]any)[0].(object)["name"].(string))
		}
		return strings.Join(list, " ")
	}
	for arguments, want := range map[string]string{
		`{"sort":[{"property":"name"}]}`: "Archive child Drafts Echo INBOX Junk Sent Trash zeta",
		`{"sort":[{"property":"name","collation":"i;octet"}],"filter":{"hasAnyRole":false}}`:    "Echo child zeta",
		`{"sort":[{"property":"name","isAscending":false}],"filter":{"hasAnyRole":false}}`:      "zeta Echo child",
		`{"sort":[{"property":"name"}],"sortAsTree":true,"filter":{"hasAnyRole":false}}`:        "Echo zeta child",
		`{"sort":[{"property":"sortOrder","isAscending":false},{"property":"name"}],"limit":2}`: "child Archive",
		`{"filter":{"role":"sent"}}`:                                                "Sent",
		`{"filter":{"name":"CH"},"sort":[{"property":"name"}]}`:                     "Archive child Echo",
		`{"filter":{"name":"CH"},"filterAsTree":true,"sort":[{"property":"name"}]}`: "Archive Echo",
		`{"filter":{"operator":"AND","conditions":[{"isSubscribed":true},{"operator":"NOT","conditions":[{"hasAnyRole":true}]}]}}`: "Echo",
		`{"filter":{"parentId":null,"hasAnyRole":false},"sort":[{"property":"name"}]}`:                                             "Echo zeta",
	} {
		if got := names(arguments); got != want {
			t.Errorf("%s: got %q, want %q", arguments, got, want)
		}
	}
	w.fails("Mailbox/query", `{"filter":{"colour":"red"}}`, "unsupportedFilter")
	w.fails("Mailbox/query", `{"sort":[{"property":"colour"}]}`, "unsupportedSort")
	w.fails("Mailbox/query", `{"sort":[{"property":"name","collation":"x"}]}`, "unsupportedSort")
	w.fails("Mailbox/query", `{"anchor":"B99"}`, "anchorNotFound")
}

func TestRFC8621Section25MailboxesAreCreatedChangedAndDestroyed(t *testing.T) {
	w := newWorld(t)
	before := w.state()
	result := w.call("Mailbox/set", `{"ifInState":"`+before+`","create":{"c":{"name":"child","parentId":"#p"},"p":{"name":"parent"}}}`)
	created := result["created"].(object)
	p, c := created["p"].(object)["id"].(string), created["c"].(object)["id"].(string)
	if result["oldState"] != before || result["newState"] == before || result["notCreated"] != nil {
		t.Errorf("got %s", text(result))
	}
	w.same("parent", w.call("Mailbox/get", `{"ids":["`+c+`"],"properties":["parentId","name"]}`)["list"], `[{"id":"`+c+`","name":"child","parentId":"`+p+`"}]`)
	w.fails("Mailbox/set", `{"ifInState":"`+before+`","destroy":["`+c+`"]}`, "stateMismatch")

	w.same("update", w.call("Mailbox/set", `{"update":{"`+c+`":{"name":"renamed","parentId":null,"sortOrder":3,"role":"junk"}}}`)["notUpdated"].(object)[c].(object)["properties"], `["name","role"]`)
	w.same("update", w.call("Mailbox/set", `{"update":{"`+c+`":{"name":"renamed","sortOrder":3}}}`)["updated"], `{"`+c+`":null}`)
	w.same("renamed", w.call("Mailbox/get", `{"ids":["`+c+`"],"properties":["name","sortOrder"]}`)["list"], `[{"id":"`+c+`","name":"renamed","sortOrder":3}]`)

	kind := func(arguments, in, id string) string {
		failed, ok := w.call("Mailbox/set", arguments)[in].(object)
		if !ok {
			return ""
		}
		return failed[id].(object)["type"].(string)
	}
	for _, f := range []struct{ arguments, in, id, want string }{
		{`{"destroy":["` + p + `"]}`, "notDestroyed", p, "mailboxHasChild"},
		{`{"destroy":["B99"]}`, "notDestroyed", "B99", "notFound"},
		{`{"destroy":["B1"]}`, "notDestroyed", "B1", "forbidden"},
		{`{"update":{"B1":{"name":"x"}}}`, "notUpdated", "B1", "forbidden"},
		{`{"update":{"B99":{"name":"x"}}}`, "notUpdated", "B99", "notFound"},
		{`{"update":{"` + c + `":{"name":null}}}`, "notUpdated", c, "invalidProperties"},
		{`{"update":{"` + c + `":{"totalEmails":3}}}`, "notUpdated", c, "invalidProperties"},
		{`{"update":{"` + c + `":{"parentId":"` + c + `"}}}`, "notUpdated", c, "invalidProperties"},
		{`{"update":{"` + c + `":{"name/x":"y"}}}`, "notUpdated", c, "invalidPatch"},
		{`{"update":{"` + c + `":{"name":"y"}},"destroy":["` + p + `","` + c + `"]}`, "notUpdated", c, "willDestroy"},
		{`{"create":{"k":{}}}`, "notCreated", "k", "invalidProperties"},
		{`{"create":{"k":{"name":"INBOX"}}}`, "notCreated", "k", "invalidProperties"},
		{`{"create":{"k":{"name":"x","role":"cook"}}}`, "notCreated", "k", "invalidProperties"},
		{`{"create":{"k":{"name":"x","parentId":"#none"}}}`, "notCreated", "k", "invalidProperties"},
		{`{"create":{"k":{"name":"x","id":"B7"}}}`, "notCreated", "k", "invalidProperties"},
	} {
		if got := kind(f.arguments, f.in, f.id); got != f.want {
			t.Errorf("%s: got %q, want %s", f.arguments, got, f.want)
		}
	}
	if left := w.call("Mailbox/get", `{"ids":["`+p+`","`+c+`"]}`)["list"].([]any); len(left) != 0 {
		t.Errorf("a parent and its child were destroyed together, and %v is left", left)
	}
}

func TestRFC8621Section25MessagesAreRemovedOnlyOnRequest(t *testing.T) {
	w := newWorld(t)
	id := w.call("Mailbox/set", `{"create":{"k":{"name":"x"}}}`)["created"].(object)["k"].(object)["id"].(string)
	email := w.add(7, message("a", "x"))
	result := w.call("Mailbox/set", `{"destroy":["`+id+`"]}`)
	w.same("with messages", result["notDestroyed"].(object)[id].(object)["type"], `"mailboxHasEmail"`)
	w.same("with onDestroyRemoveEmails", w.call("Mailbox/set", `{"onDestroyRemoveEmails":true,"destroy":["`+id+`"]}`)["destroyed"], `["`+id+`"]`)
	w.same("the message", w.call("Email/get", `{"ids":["`+email+`"]}`)["notFound"], `["`+email+`"]`)
}

func TestRFC9425QuotasShowLimitsAndUse(t *testing.T) {
	w := newWorld(t)
	w.same("no limit", w.call("Quota/get", `{"ids":null}`)["list"], `[]`)
	state := w.state()
	if err := w.store.SetQuota(t.Context(), w.id, 1000, 3); err != nil {
		t.Fatal(err)
	}
	w.add(1, message("a", "x"))
	w.same("limits", w.call("Quota/get", `{"ids":null,"properties":["resourceType","used","hardLimit","scope","types"]}`)["list"],
		`[{"hardLimit":1000,"id":"octets","resourceType":"octets","scope":"account","types":["Email"],"used":17},{"hardLimit":3,"id":"count","resourceType":"count","scope":"account","types":["Email"],"used":1}]`)
	w.same("changes", w.call("Quota/changes", `{"sinceState":"`+state+`"}`)["updated"], `["octets","count"]`)
	w.same("query", w.call("Quota/query", `{"filter":{"resourceType":"count"}}`)["ids"], `["count"]`)
	w.same("sorted", w.call("Quota/query", `{"sort":[{"property":"used"}]}`)["ids"], `["count","octets"]`)
	w.same("queryChanges", w.call("Quota/queryChanges", `{"sinceQueryState":"`+state+`"}`)["added"], `[{"id":"octets","index":0},{"id":"count","index":1}]`)
	w.fails("Quota/query", `{"filter":{"colour":1}}`, "unsupportedFilter")

	w.add(1, message("a", "x"))
	w.add(1, message("a", "x"))
	result := w.call("Email/set", `{"create":{"k":{"mailboxIds":{"B1":true},"subject":"over"}}}`)
	w.same("over the quota", result["notCreated"].(object)["k"].(object)["type"], `"overQuota"`)
}

func TestRFC8621Section22UpdatedPropertiesSayThatOnlyCountsChanged(t *testing.T) {
	w := newWorld(t)
	changes := func(state string) object { return w.call("Mailbox/changes", `{"sinceState":"`+state+`"}`) }
	start := w.state()
	w.same("nothing", changes(start)["updatedProperties"], `null`)
	w.add(mailbox.InboxID, message("one", "x"))
	counts := changes(start)
	w.same("a new message", []any{counts["updated"], counts["updatedProperties"]}, `[["B1"],["totalEmails","unreadEmails","totalThreads","unreadThreads"]]`)
	before := w.state()
	w.call("Mailbox/set", `{"update":{"B1":{"sortOrder":7}}}`)
	w.same("a property", changes(before)["updatedProperties"], `null`)
	after := w.state()
	w.add(mailbox.InboxID, message("two", "x"))
	w.same("a property and later a message", changes(before)["updatedProperties"], `null`)
	w.same("a message after a property", changes(after)["updatedProperties"], `["totalEmails","unreadEmails","totalThreads","unreadThreads"]`)
}
