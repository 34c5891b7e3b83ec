package doctor

import (
	"context"
	"net"
	"strings"
	"testing"

	"golang.org/x/net/dns/dnsmessage"
)

// A dnsServer answers for all domains that a test knows.
type dnsServer struct {
	texts  map[string][]string // by name, without the last dot
	hosts  map[string]string   // addresses
	mails  map[string][]string // hosts of MX records
	broken map[string]bool     // names for which it fails
}

// resolver starts a server for what is known, and returns who asks it.
func (s *dnsServer) resolver(t *testing.T) *net.Resolver {
	t.Helper()
	conn, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan struct{})
	go func() {
		defer close(served)
		buffer := make([]byte, 4096)
		for {
			n, from, err := conn.ReadFrom(buffer)
			if err != nil {
				return // the test is over
			}
			if answer, ok := s.answer(buffer[:n]); ok {
				_, _ = conn.WriteTo(answer, from)
			}
		}
	}()
	t.Cleanup(func() {
		conn.Close()
		<-served
	})
	return &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "udp", conn.LocalAddr().String())
	}}
}

// answer makes the answer to a question; false where there is none in it.
func (s *dnsServer) answer(question []byte) ([]byte, bool) {
	var m dnsmessage.Message
	if m.Unpack(question) != nil || len(m.Questions) != 1 {
		return nil, false
	}
	q := m.Questions[0]
	name := strings.ToLower(strings.TrimSuffix(q.Name.String(), "."))
	reply := dnsmessage.Message{Header: dnsmessage.Header{ID: m.ID, Response: true, RecursionAvailable: true}, Questions: m.Questions}
	add := func(body dnsmessage.ResourceBody) {
		reply.Answers = append(reply.Answers, dnsmessage.Resource{Header: dnsmessage.ResourceHeader{Name: q.Name, Class: dnsmessage.ClassINET, TTL: 60}, Body: body})
	}
	texts, hasTexts := s.texts[name]
	host, hasHost := s.hosts[name]
	mails, hasMails := s.mails[name]
	switch {
	case s.broken[name]:
		reply.RCode = dnsmessage.RCodeServerFailure
	case !hasTexts && !hasHost && !hasMails:
		reply.RCode = dnsmessage.RCodeNameError
	case q.Type == dnsmessage.TypeTXT:
		for _, text := range texts {
			txt := &dnsmessage.TXTResource{}
			for text != "" {
				n := min(len(text), 255)
				txt.TXT = append(txt.TXT, text[:n])
				text = text[n:]
			}
			add(txt)
		}
	case q.Type == dnsmessage.TypeA && hasHost:
		add(&dnsmessage.AResource{A: [4]byte(net.ParseIP(host).To4())})
	case q.Type == dnsmessage.TypeMX:
		for i, to := range mails {
			add(&dnsmessage.MXResource{Pref: uint16(i), MX: dnsmessage.MustNewName(to + ".")})
		}
	}
	packed, err := reply.Pack()
	return packed, err == nil
}

// asks has the doctor ask a server.
func (s *dnsServer) asks(t *testing.T, o *Options) {
	t.Helper()
	r := s.resolver(t)
	o.LookupTXT, o.LookupHost = r.LookupTXT, r.LookupHost
	o.LookupMX = func(ctx context.Context, domain string) ([]string, error) {
		records, err := r.LookupMX(ctx, domain)
		hosts := make([]string, len(records))
		for i, mx := range records {
			hosts[i] = mx.Host
		}
		return hosts, err
	}
}
