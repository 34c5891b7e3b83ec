package mail_test

import (
	"fmt"
	"log/slog"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"fanfare.dev/fanfare/internal/jmap/core"
	"fanfare.dev/fanfare/internal/jmap/mail"
	"fanfare.dev/fanfare/internal/mailbox"
	"fanfare.dev/fanfare/internal/store/storetest"
)

// BenchmarkInbox makes the calls of a program that shows an inbox with 1,000 messages of 2 to 50 KB.
func BenchmarkInbox(b *testing.B) {
	clock := &testClock{now: time.Date(2026, 11, 27, 12, 0, 0, 0, time.UTC)}
	log := slog.New(slog.DiscardHandler)
	store := mailbox.New(storetest.OpenAt(b, b.TempDir()), mailbox.Options{Clock: clock, Logger: log})
	b.Cleanup(store.Close)
	if _, err := store.Create(b.Context(), mailbox.Owner{ID: 7, Service: "press", Address: "ann@example.org"}); err != nil {
		b.Fatal(err)
	}
	r := rand.New(rand.NewPCG(1, 1))
	for range 100 {
		var list []mailbox.NewMessage
		for range 10 {
			body := strings.Repeat("Lorem ipsum dolor sit amet\r\n", 70+r.IntN(1700))
			list = append(list, mailbox.NewMessage{Mailbox: 1, Received: clock.Now(), Content: []byte(message(fmt.Sprint("subject ", r.Uint32()), body, "From: Ann <ann@example.org>", fmt.Sprintf("Message-ID: <%d@x>", r.Uint64())))})
			clock.advance(time.Minute)
		}
		if _, err := store.Append(b.Context(), 7, list); err != nil {
			b.Fatal(err)
		}
	}
	server := &core.Server{Methods: mail.New(mail.Options{Store: store, Clock: clock, Logger: log}).Table(), Capabilities: []string{core.Capability, mail.Capability}, Logger: log,
		Limits: core.Limits{MaxCallsInRequest: 16, MaxObjectsInGet: 1000, MaxObjectsInSet: 1000}}
	for name, calls := range map[string]string{
		"list": `[["Email/query",{"accountId":"a7","filter":{"inMailbox":"B1"},"sort":[{"property":"receivedAt","isAscending":false}],"limit":30,"collapseThreads":true},"0"],
			["Email/get",{"accountId":"a7","#ids":{"resultOf":"0","name":"Email/query","path":"/ids"},"properties":["threadId","from","subject","receivedAt","keywords","preview","hasAttachment"]},"1"]]`,
		"mailboxes": `[["Mailbox/get",{"accountId":"a7","ids":null},"0"]]`,
		"read":      `[["Email/get",{"accountId":"a7","ids":["M500"],"fetchTextBodyValues":true},"0"]]`,
		"search":    `[["Email/query",{"accountId":"a7","filter":{"text":"absent"}},"0"]]`,
		"changes":   `[["Email/changes",{"accountId":"a7","sinceState":"90"},"0"]]`,
		"seen":      `[["Email/set",{"accountId":"a7","update":{"M500":{"keywords/$seen":true},"M501":{"keywords/$seen":null}}},"0"],["Email/set",{"accountId":"a7","update":{"M500":{"keywords/$seen":null}}},"0"]]`,
	} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				request, refused := core.ParseRequest([]byte(`{"using":["urn:ietf:params:jmap:core","urn:ietf:params:jmap:mail"],"methodCalls":` + calls + `}`))
				if refused != nil {
					b.Fatal(refused)
				}
				response, refused := server.Run(b.Context(), "a7", request, "s")
				if refused != nil || response.Responses[0].Name == "error" {
					b.Fatal(refused, response)
				}
			}
		})
	}
}
