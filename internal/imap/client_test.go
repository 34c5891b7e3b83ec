package imap_test

import (
	"crypto/tls"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	goimap "github.com/emersion/go-imap/v2"
	"github.com/emersion/go-imap/v2/imapclient"

	"fanfare.dev/fanfare/internal/imap"
)

// startClient connects the client of another implementation by STARTTLS, and logs in.
func (w *world) startClient(secured *tls.Config, o imapclient.Options) *imapclient.Client {
	w.t.Helper()
	conn, err := net.Dial("tcp", w.addr)
	must(w.t, err)
	o.TLSConfig = secured
	c, err := imapclient.NewStartTLS(conn, &o)
	must(w.t, err)
	w.t.Cleanup(func() { c.Close() })
	must(w.t, c.Login(address(1), w.password).Wait())
	return c
}

// TestAnotherImplementationReadsTheResponses uses the client of go-imap, whose parser shares no code with the server, in IMAP4rev1 and IMAP4rev2.
func TestAnotherImplementationReadsTheResponses(t *testing.T) {
	for name, rev2 := range map[string]bool{"rev1": false, "rev2": true} {
		t.Run(name, func(t *testing.T) {
			server, secured := certificate(t)
			w := newWorld(t, func(o *imap.Options) { o.TLS, o.TrustsNetwork = server, nil })
			must(t, w.store.SetQuota(t.Context(), 1, 1<<20, 50))
			arrived := make(chan uint32, 10)
			c := w.startClient(secured, imapclient.Options{UnilateralDataHandler: &imapclient.UnilateralDataHandler{Mailbox: func(d *imapclient.UnilateralDataMailbox) {
				if d.NumMessages != nil {
					select {
					case arrived <- *d.NumMessages:
					default:
					}
				}
			}}})
			if rev2 {
				data, err := c.Enable(goimap.CapIMAP4rev2).Wait()
				if err != nil || !data.Caps.Has(goimap.CapIMAP4rev2) {
					t.Fatalf("ENABLE: %v, %v", data, err)
				}
			}
			must(t, c.Create("Projekte/Ä b", nil).Wait())
			list, err := c.List("", "*", &goimap.ListOptions{ReturnStatus: &goimap.StatusOptions{NumMessages: true, Size: true}, ReturnSpecialUse: true, ReturnSubscribed: true}).Collect()
			must(t, err)
			var names []string
			for _, m := range list {
				names = append(names, m.Mailbox)
				if m.Status == nil || m.Status.NumMessages == nil || m.Status.Size == nil {
					t.Errorf("%s has no status", m.Mailbox)
				}
				if m.Mailbox == "Sent" && !slices.Contains(m.Attrs, goimap.MailboxAttrSent) {
					t.Errorf("Sent has the attributes %v", m.Attrs)
				}
			}
			if !slices.Contains(names, "Projekte/Ä b") || !slices.Contains(names, "INBOX") {
				t.Errorf("mailboxes %q", names)
			}

			message := "From: =?utf-8?q?J=C3=B6rg?= <joerg@example.org>\r\nSubject: =?utf-8?q?Gr=C3=BC=C3=9Fe?=\r\nDate: Tue, 01 Feb 1994 12:34:56 +0100\r\nMIME-Version: 1.0\r\nContent-Type: multipart/mixed; boundary=b\r\n\r\n" +
				"--b\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Transfer-Encoding: base64\r\n\r\nSGVsbG8=\r\n--b\r\nContent-Type: application/pdf; name=x.pdf\r\nContent-Disposition: attachment; filename=x.pdf\r\n\r\npdf\r\n--b--\r\n"
			at := time.Date(2020, 1, 2, 3, 4, 5, 0, time.UTC)
			add := c.Append("INBOX", int64(len(message)), &goimap.AppendOptions{Flags: []goimap.Flag{goimap.FlagSeen, "work"}, Time: at})
			_, err = add.Write([]byte(message))
			must(t, err)
			must(t, add.Close())
			added, err := add.Wait()
			if err != nil || added.UID != 1 {
				t.Fatalf("APPEND: %+v, %v", added, err)
			}
			selected, err := c.Select("INBOX", &goimap.SelectOptions{CondStore: true}).Wait()
			if err != nil || selected.NumMessages != 1 || selected.UIDNext != 2 || selected.UIDValidity != added.UIDValidity || selected.HighestModSeq == 0 || rev2 != (selected.List != nil) {
				t.Fatalf("SELECT: %+v, %v", selected, err)
			}

			text := &goimap.FetchItemBodySection{Part: []int{1}, Peek: true}
			whole := &goimap.FetchItemBodySection{Peek: true}
			binary := &goimap.FetchItemBinarySection{Part: []int{1}, Peek: true}
			messages, err := c.Fetch(goimap.UIDSetNum(1), &goimap.FetchOptions{Envelope: true, Flags: true, InternalDate: true, RFC822Size: true, ModSeq: true, BodyStructure: &goimap.FetchItemBodyStructure{Extended: true},
				BodySection: []*goimap.FetchItemBodySection{text, whole}, BinarySection: []*goimap.FetchItemBinarySection{binary}}).Collect()
			if err != nil || len(messages) != 1 {
				t.Fatalf("FETCH: %v, %v", messages, err)
			}
			m := messages[0]
			if m.UID != 1 || m.Envelope.Subject != "Grüße" || m.Envelope.From[0].Name != "Jörg" || m.Envelope.From[0].Addr() != "joerg@example.org" || !m.InternalDate.Equal(at) || m.RFC822Size != int64(len(message)) || m.ModSeq == 0 {
				t.Errorf("message %+v with envelope %+v", m, m.Envelope)
			}
			if !slices.Contains(m.Flags, goimap.FlagSeen) || !slices.Contains(m.Flags, "work") || rev2 && slices.Contains(m.Flags, "\\Recent") {
				t.Errorf("flags %v", m.Flags)
			}
			if got := string(m.FindBodySection(text)); got != "SGVsbG8=" {
				t.Errorf("part 1 is %q", got)
			}
			if got := string(m.FindBodySection(whole)); got != message {
				t.Errorf("the message is %q", got)
			}
			if got := string(m.FindBinarySection(binary)); got != "Hello" {
				t.Errorf("the decoded part is %q", got)
			}
			if s, ok := m.BodyStructure.(*goimap.BodyStructureMultiPart); !ok || len(s.Children) != 2 || s.MediaType() != "multipart/mixed" || s.Children[1].Disposition() == nil || s.Children[1].Disposition().Value != "attachment" {
				t.Errorf("structure %+v", m.BodyStructure)
			}

			changed, err := c.Store(goimap.SeqSetNum(1), &goimap.StoreFlags{Op: goimap.StoreFlagsAdd, Flags: []goimap.Flag{goimap.FlagFlagged}}, &goimap.StoreOptions{UnchangedSince: m.ModSeq}).Collect()
			if err != nil || len(changed) != 1 || !slices.Contains(changed[0].Flags, goimap.FlagFlagged) {
				t.Errorf("STORE: %v, %v", changed, err)
			}
			found, err := c.UIDSearch(&goimap.SearchCriteria{Header: []goimap.SearchCriteriaHeaderField{{Key: "Subject", Value: "GRÜSS"}}, Flag: []goimap.Flag{goimap.FlagFlagged}}, &goimap.SearchOptions{ReturnAll: true, ReturnCount: true}).Wait()
			if err != nil || found.Count != 0 {
				t.Errorf("SEARCH: %+v, %v", found, err)
			}
			found, err = c.UIDSearch(&goimap.SearchCriteria{Body: []string{"hello"}, Not: []goimap.SearchCriteria{{Text: []string{"nothing"}}}}, &goimap.SearchOptions{ReturnAll: true, ReturnMin: true}).Wait()
			if err != nil || found.Min != 1 || found.All.String() != "1" {
				t.Errorf("SEARCH: %+v, %v", found, err)
			}
			copied, err := c.Copy(goimap.UIDSetNum(1), "Archive").Wait()
			if err != nil || copied.SourceUIDs.String() != "1" || copied.DestUIDs.String() != "1" {
				t.Errorf("COPY: %+v, %v", copied, err)
			}
			moved, err := c.Move(goimap.UIDSetNum(1), "Projekte/Ä b").Wait()
			if err != nil || moved.UIDValidity == 0 || c.Mailbox().NumMessages != 0 {
				t.Errorf("MOVE: %+v, %v, %d messages remain", moved, err, c.Mailbox().NumMessages)
			}
			quotas, err := c.GetQuotaRoot("INBOX").Wait()
			if err != nil || len(quotas) != 1 || quotas[0].Resources[goimap.QuotaResourceMessage] != (imapclient.QuotaResourceData{Usage: 2, Limit: 50}) || quotas[0].Resources[goimap.QuotaResourceStorage].Limit != 1024 {
				t.Errorf("QUOTA: %+v, %v", quotas, err)
			}
			space, err := c.Namespace().Wait()
			if err != nil || len(space.Personal) != 1 || space.Personal[0].Delim != '/' {
				t.Errorf("NAMESPACE: %+v, %v", space, err)
			}

			idle, err := c.Idle()
			must(t, err)
			other := w.startClient(secured, imapclient.Options{})
			add = other.Append("INBOX", 5, nil)
			_, err = add.Write([]byte("a: b\n"))
			must(t, err)
			must(t, add.Close())
			_, err = add.Wait()
			must(t, err)
			for wait := time.After(patience); ; {
				select {
				case n := <-arrived:
					if n != 1 {
						continue
					}
				case <-wait:
					t.Error("the client did not hear of a message")
				}
				break
			}
			must(t, idle.Close())
			must(t, idle.Wait())
			if err := c.Delete("Projekte").Wait(); err == nil || !strings.Contains(err.Error(), "HASCHILDREN") {
				t.Errorf("DELETE of a mailbox with a child: %v", err)
			}
			must(t, c.UnselectAndExpunge().Wait())
			must(t, c.Logout().Wait())
		})
	}
}
