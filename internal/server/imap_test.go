package server_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"io"
	"log/slog"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"fanfare.dev/fanfare/internal/clock"
	"fanfare.dev/fanfare/internal/config"
	"fanfare.dev/fanfare/internal/mailbox"
	"fanfare.dev/fanfare/internal/mailbox/apppassword"
	"fanfare.dev/fanfare/internal/sink"
	"fanfare.dev/fanfare/internal/store"
	"fanfare.dev/fanfare/internal/store/sqlite"
)

// TestMailProgramsOpenMailboxes logs in on both listeners, before and after a restart.
func TestMailProgramsOpenMailboxes(t *testing.T) {
	s := startOn(t, "", sink.Inject{})
	s.app.Stop()
	cert, key, trusted := certificateFiles(t)
	listeners := []string{freeAddress(t), freeAddress(t)}
	s.change = func(c *config.Config) {
		c.IMAPListen, c.IMAPSListen, c.IMAPTLSCert, c.IMAPTLSKey = listeners[0], listeners[1], cert, key
	}
	const address = "reader@example.org"
	password := createAccount(t, s.dir, address)
	s.open()
	for round := range 2 {
		for i, listener := range listeners {
			conn, err := net.Dial("tcp", listener)
			if err != nil {
				t.Fatal(err)
			}
			_ = conn.SetDeadline(time.Now().Add(patience))
			if i == 1 {
				conn = tls.Client(conn, trusted)
			}
			fmt.Fprintf(conn, "a LOGIN %s %s\r\nb APPEND INBOX {13+}\r\nSubject: x\r\n\r\n\r\nc STATUS INBOX (MESSAGES)\r\nd LOGOUT\r\n", address, password)
			all, err := io.ReadAll(conn)
			want := fmt.Sprintf("STATUS INBOX (MESSAGES %d)", 2*round+i+1)
			if text := string(all); err != nil || !strings.Contains(text, "\r\na OK") || !strings.Contains(text, want) {
				t.Errorf("round %d: %v, without %q:\n%s", round, err, want, text)
			}
			conn.Close()
		}
		if code, metrics := s.call("GET", "/metrics", "", ""); code != 200 || !strings.Contains(metrics, `fanfare_imap_commands_total{command="LOGIN",result="OK"} 2`) {
			t.Errorf("metrics: %d, without the logins", code)
		}
		s.app.Stop()
		s.open()
	}
}

// createAccount creates an account in the database of a server that does not run, and returns an app password of it.
func createAccount(t *testing.T, dir, address string) string {
	t.Helper()
	db, err := sqlite.Open(t.Context(), dir, store.Relaxed)
	if err != nil {
		t.Fatal(err)
	}
	mailboxes := mailbox.New(db, mailbox.Options{Clock: clock.System{}, Logger: slog.New(slog.DiscardHandler)})
	account, err := mailboxes.Create(t.Context(), mailbox.Owner{ID: 1, Service: "news", Address: address})
	if err != nil {
		t.Fatal(err)
	}
	password := apppassword.Generate()
	verifier, err := apppassword.Verifier(address, password, nil)
	if err == nil {
		err = mailboxes.AddCredential(t.Context(), account.ID, &mailbox.Credential{Name: "test", Verifier: verifier})
	}
	if err != nil {
		t.Fatal(err)
	}
	mailboxes.Close()
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	return password
}

// freeAddress returns an address on which nothing listens.
func freeAddress(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// certificateFiles writes a certificate of 127.0.0.1.
func certificateFiles(t *testing.T) (cert, key string, trusted *tls.Config) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		IsCA: true, BasicConstraintsValid: true}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &private.PublicKey, private)
	if err != nil {
		t.Fatal(err)
	}
	privateDER, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	cert, key = filepath.Join(t.TempDir(), "cert.pem"), filepath.Join(t.TempDir(), "key.pem")
	for path, block := range map[string]*pem.Block{cert: {Type: "CERTIFICATE", Bytes: der}, key: {Type: "PRIVATE KEY", Bytes: privateDER}} {
		if err := os.WriteFile(path, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
	return cert, key, &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: pool, ServerName: "127.0.0.1"}
}
