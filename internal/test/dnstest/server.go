// Package dnstest provides a DNS server for tests. It listens on UDP at 127.0.0.1 and answers with the records of a test.
//
// The records are set before the server starts; Add and Break change them later. The server stops at the end of the test.
// It answers NXDOMAIN for an unknown name, and returns only the given records for a known name. If it cannot start, the
// test fails.
package dnstest

import (
	"context"
	"net"
	"strings"
	"sync"
	"testing"

	"golang.org/x/net/dns/dnsmessage"
)

// A Server answers for names, which are in lower case and without the last dot. It
// answers questions for TXT, A and MX records.
type Server struct {
	Texts  map[string][]string // each as one, however long
	Hosts  map[string]string   // IPv4 addresses
	Mails  map[string][]string // hosts that take mail, the preferred first
	Broken map[string]bool     // names for which it fails (SERVFAIL)

	mu sync.Mutex // protects the records that change after the start
}

// Add puts texts at a name, in place of those that are there; it does not fail for it any more.
func (s *Server) Add(name string, texts ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.Texts == nil {
		s.Texts = map[string][]string{}
	}
	s.Texts[name] = texts
	delete(s.Broken, name)
}

// Break has the server fail for a name.
func (s *Server) Break(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.Broken == nil {
		s.Broken = map[string]bool{}
	}
	s.Broken[name] = true
}

// Start has the server answer until the test ends, and returns where: host:port.
func (s *Server) Start(t testing.TB) string {
	t.Helper()
	conn, err := net.ListenPacket("udp", "127.0.0.1:0") //nolint:noctx // it ends with the test
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan struct{})
	go func() {
		defer close(served)
		s.serve(conn)
	}()
	t.Cleanup(func() {
		if err := conn.Close(); err != nil {
			t.Error(err)
		}
		<-served
	})
	return conn.LocalAddr().String()
}

// Resolver starts the server and returns a resolver that asks only this server.
func (s *Server) Resolver(t testing.TB) *net.Resolver {
	t.Helper()
	address := s.Start(t)
	return &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "udp", address)
	}}
}

func (s *Server) serve(conn net.PacketConn) {
	buffer := make([]byte, 4096)
	for {
		n, from, err := conn.ReadFrom(buffer)
		if err != nil {
			return // the test is over
		}
		if answer, ok := s.answer(buffer[:n]); ok {
			_, _ = conn.WriteTo(answer, from) // the client repeats a lost query
		}
	}
}

// answer returns the answer to a query, or false if the query has no question.
func (s *Server) answer(question []byte) ([]byte, bool) {
	var m dnsmessage.Message
	if m.Unpack(question) != nil || len(m.Questions) != 1 {
		return nil, false
	}
	q := m.Questions[0]
	reply := dnsmessage.Message{Header: dnsmessage.Header{ID: m.ID, Response: true, RecursionAvailable: true}, Questions: m.Questions}
	name := strings.ToLower(strings.TrimSuffix(q.Name.String(), "."))
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.Broken[name]:
		reply.RCode = dnsmessage.RCodeServerFailure
	case !s.knows(name):
		reply.RCode = dnsmessage.RCodeNameError
	default:
		for _, body := range s.of(name, q.Type) {
			reply.Answers = append(reply.Answers, dnsmessage.Resource{Header: dnsmessage.ResourceHeader{Name: q.Name, Class: dnsmessage.ClassINET, TTL: 60}, Body: body})
		}
	}
	packed, err := reply.Pack()
	return packed, err == nil
}

func (s *Server) knows(name string) bool {
	_, texts := s.Texts[name]
	_, host := s.Hosts[name]
	_, mails := s.Mails[name]
	return texts || host || mails
}

// of returns the records of a type.
func (s *Server) of(name string, kind dnsmessage.Type) (all []dnsmessage.ResourceBody) {
	switch kind {
	case dnsmessage.TypeTXT:
		for _, text := range s.Texts[name] {
			all = append(all, &dnsmessage.TXTResource{TXT: cut(text)})
		}
	case dnsmessage.TypeA:
		if ip := net.ParseIP(s.Hosts[name]).To4(); ip != nil {
			all = append(all, &dnsmessage.AResource{A: [4]byte(ip)})
		}
	case dnsmessage.TypeMX:
		for i, to := range s.Mails[name] {
			all = append(all, &dnsmessage.MXResource{Pref: uint16(i), MX: dnsmessage.MustNewName(to + ".")})
		}
	}
	return all
}

// cut makes strings of a text that are not longer than a record may have them.
func cut(text string) (all []string) {
	for text != "" {
		n := min(len(text), 255)
		all, text = append(all, text[:n]), text[n:]
	}
	return all
}
