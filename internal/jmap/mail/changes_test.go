package mail_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"

	"fanfare.dev/fanfare/internal/mailbox"
)

// records are the records of a type as a client has them: id -> JSON.
type records map[string]string

// types have the methods by which a client reads them all.
var types = []string{"Email", "Mailbox", "Thread"}

// full reads all records of a type.
func (w *world) full(kind string) (records, string) {
	w.Helper()
	arguments := `{"ids":null}`
	if kind == "Email" {
		arguments = `{"ids":null,"properties":["keywords","mailboxIds","threadId"]}`
	}
	result := w.call(kind+"/get", arguments)
	all := records{}
	for _, record := range result["list"].([]any) {
		all[record.(object)["id"].(string)] = text(record)
	}
	return all, result["state"].(string)
}

// sync brings records from a state up to date as a client does, with steps of at most most changes. It returns false if the client must read everything again.
func (w *world) sync(kind string, known records, state string, most int) (records, bool) {
	w.Helper()
	now := maps.Clone(known)
	arguments := ""
	if most > 0 {
		arguments = `,"maxChanges":` + strconv.Itoa(most)
	}
	for range 10_000 {
		name, result := w.try(kind+"/changes", `{"sinceState":"`+state+`"`+arguments+`}`)
		if name == "error" {
			return nil, false
		}
		var stale []string
		count := 0
		for _, list := range []string{"created", "updated", "destroyed"} {
			for _, id := range result[list].([]any) {
				count++
				_, has := now[id.(string)]
				switch {
				case list == "created" && has:
					w.Errorf("%s/changes from %s: %v was created, but the client has it", kind, state, id)
				case list == "updated" && !has && kind != "Thread":
					continue // a client can ignore what it does not have
				case list == "destroyed":
					delete(now, id.(string))
					continue
				}
				stale = append(stale, id.(string))
			}
		}
		if most > 0 && count > most {
			w.Errorf("%s/changes has %d changes, more than %d", kind, count, most)
		}
		if len(stale) > 0 {
			properties := ""
			if kind == "Email" {
				properties = `,"properties":["keywords","mailboxIds","threadId"]`
			}
			got := w.call(kind+"/get", `{"ids":["`+strings.Join(stale, `","`)+`"]`+properties+`}`)
			for _, record := range got["list"].([]any) {
				now[record.(object)["id"].(string)] = text(record)
			}
			for _, id := range got["notFound"].([]any) {
				delete(now, id.(string))
			}
		}
		if result["newState"] == state && result["hasMoreChanges"] == true {
			w.Fatalf("%s/changes from %s makes no progress", kind, state)
		}
		state = result["newState"].(string)
		if result["hasMoreChanges"] != true {
			return now, true
		}
	}
	w.Fatalf("%s/changes does not end", kind)
	return nil, false
}

// step makes a random change, by the store as other protocols do or by JMAP.
func (w *world) step(r *rand.Rand) {
	w.Helper()
	emails := w.call("Email/query", `{}`)["ids"].([]any)
	boxes := w.call("Mailbox/query", `{}`)["ids"].([]any)
	pick := func(list []any) string { return list[r.IntN(len(list))].(string) }
	if len(emails) == 0 || r.IntN(4) == 0 {
		var list []mailbox.NewMessage
		for range 1 + r.IntN(3) {
			n := r.IntN(4)
			list = append(list, mailbox.NewMessage{Mailbox: 1, Content: []byte(message("s", "x", fmt.Sprintf("Message-ID: <%d.%d@x>", n, r.Uint32()), fmt.Sprintf("References: <%d@x>", n)))})
		}
		if _, err := w.store.Append(w.Context(), w.id, list); err != nil {
			w.Fatal(err)
		}
		return
	}
	switch r.IntN(9) {
	case 0, 1:
		w.call("Email/set", `{"update":{"`+pick(emails)+`":{"keywords/$seen":true}}}`)
		w.call("Email/set", `{"update":{"`+pick(emails)+`":{"keywords/x":true}}}`)
	case 2:
		w.call("Email/set", `{"update":{"`+pick(emails)+`":{"mailboxIds":{"`+pick(boxes)+`":true}}}}`)
	case 3:
		w.call("Email/set", `{"destroy":["`+pick(emails)+`"]}`)
	case 4:
		w.call("Email/set", `{"destroy":["`+pick(emails)+`","`+pick(emails)+`"],"update":{"`+pick(emails)+`":{"keywords/$flagged":true}}}`)
	case 5:
		w.call("Mailbox/set", fmt.Sprintf(`{"create":{"k":{"name":"n%d"}}}`, r.IntN(1e9)))
	case 6:
		w.call("Mailbox/set", `{"onDestroyRemoveEmails":true,"destroy":["`+pick(boxes)+`"],"update":{"`+pick(boxes)+`":{"sortOrder":`+strconv.Itoa(r.IntN(100))+`}}}`)
	case 7:
		id, _ := strconv.Atoi(strings.TrimPrefix(pick(emails), "M"))
		if _, _, err := w.store.UpdateFlags(w.Context(), w.id, []mailbox.FlagChange{{Emails: []mailbox.EmailID{mailbox.EmailID(id)}, Mode: mailbox.AddFlags, Flags: mailbox.Deleted}}); err != nil {
			w.Fatal(err)
		}
	case 8:
		id, _ := strconv.Atoi(strings.TrimPrefix(pick(emails), "M"))
		box, _ := strconv.Atoi(strings.TrimPrefix(pick(boxes), "B"))
		if _, _, err := w.store.Copy(w.Context(), w.id, []mailbox.EmailID{mailbox.EmailID(id)}, mailbox.MailboxID(box)); err != nil {
			w.Fatal(err)
		}
	}
}

func TestRFC8620Section52ChangesFromAnyStateEqualAFullRead(t *testing.T) {
	for seed := range uint64(6) {
		t.Run(strconv.FormatUint(seed, 10), func(t *testing.T) {
			w := newWorld(t)
			r := rand.New(rand.NewPCG(seed, 1))
			type snapshot struct {
				records records
				state   string
			}
			history := map[string][]snapshot{}
			for range 40 {
				for _, kind := range types {
					all, state := w.full(kind)
					history[kind] = append(history[kind], snapshot{all, state})
				}
				w.step(r)
			}
			for _, kind := range types {
				want, _ := w.full(kind)
				for i, old := range history[kind] {
					for _, most := range []int{0, 1, 2, 5} {
						got, ok := w.sync(kind, old.records, old.state, most)
						if !ok {
							t.Fatalf("%s: the changes from state %s are not known", kind, old.state)
						}
						if !maps.Equal(got, want) {
							t.Fatalf("%s from step %d (%s) in steps of %d:\n got %v\nwant %v", kind, i, old.state, most, got, want)
						}
					}
				}
			}
		})
	}
}

// A cachedQuery is the result of a query that a client has.
type cachedQuery struct {
	ids   []string
	state string
}

func (w *world) query(method, arguments string) cachedQuery {
	w.Helper()
	result := w.call(method, `{`+arguments+`}`)
	q := cachedQuery{state: result["queryState"].(string)}
	for _, id := range result["ids"].([]any) {
		q.ids = append(q.ids, id.(string))
	}
	return q
}

func TestRFC8620Section56QueryChangesFromAnyStateEqualANewQuery(t *testing.T) {
	queries := map[string]string{
		`"sort":[{"property":"receivedAt","isAscending":false}]`:                                                           "Email",
		`"filter":{"inMailbox":"B1","notKeyword":"$seen"},"sort":[{"property":"subject"},{"property":"receivedAt"}]`:       "Email",
		`"filter":{"someInThreadHaveKeyword":"$flagged"},"sort":[{"property":"allInThreadHaveKeyword","keyword":"$seen"}]`: "Email",
		`"collapseThreads":true,"sort":[{"property":"hasKeyword","keyword":"$seen"},{"property":"receivedAt"}]`:            "Email",
		`"sort":[{"property":"sortOrder"},{"property":"name"}],"sortAsTree":true`:                                          "Mailbox",
	}
	for seed := range uint64(4) {
		w := newWorld(t)
		r := rand.New(rand.NewPCG(seed, 2))
		history := map[string][]cachedQuery{}
		for range 30 {
			for arguments, kind := range queries {
				history[arguments] = append(history[arguments], w.query(kind+"/query", arguments))
			}
			w.step(r)
		}
		for arguments, kind := range queries {
			want := w.query(kind+"/query", arguments)
			for i, old := range history[arguments] {
				result := w.call(kind+"/queryChanges", `{`+arguments+`,"sinceQueryState":"`+old.state+`","calculateTotal":true}`)
				ids := slices.Clone(old.ids)
				for _, id := range result["removed"].([]any) {
					ids = slices.DeleteFunc(ids, func(known string) bool { return known == id })
				}
				for _, added := range result["added"].([]any) {
					at := int(added.(object)["index"].(float64))
					if at > len(ids) {
						t.Fatalf("seed %d, %s from step %d: index %d is beyond the end", seed, arguments, i, at)
					}
					ids = slices.Insert(ids, at, added.(object)["id"].(string))
				}
				if !slices.Equal(ids, want.ids) || result["newQueryState"] != want.state || int(result["total"].(float64)) != len(want.ids) {
					t.Fatalf("seed %d, %s from step %d: got %v, want %v", seed, arguments, i, ids, want.ids)
				}
			}
		}
	}
}

func TestRFC8620Section52UnknownStatesAreRefused(t *testing.T) {
	w := newWorld(t)
	w.add(1, message("a", "x"))
	for _, kind := range append(types, "Quota") {
		for _, state := range []string{"", "x", "-1", "99999", "01", "1.", "1.x", "0.1", "1.01", "9223372036854775808"} {
			w.fails(kind+"/changes", `{"sinceState":"`+state+`"}`, "cannotCalculateChanges")
		}
		w.fails(kind+"/changes", `{}`, "invalidArguments")
		w.fails(kind+"/changes", `{"sinceState":"1","maxChanges":0}`, "invalidArguments")
		w.fails(kind+"/changes", `{"sinceState":1}`, "invalidArguments")
	}
	w.fails("Email/queryChanges", `{"sinceQueryState":"x"}`, "cannotCalculateChanges")
	w.fails("Email/queryChanges", `{"sinceQueryState":"`+w.state()+`","filter":{"colour":1}}`, "unsupportedFilter")
	before := w.state()
	w.add(1, message("a", "x"))
	w.fails("Email/queryChanges", `{"sinceQueryState":"`+before+`","maxChanges":1}`, "tooManyChanges")
}
