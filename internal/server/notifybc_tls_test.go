package server_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"fanfare.dev/fanfare/internal/sink"
)

// authority signs certificates.
type authority struct {
	t    *testing.T
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

// issued is a certificate with its key.
type issued struct {
	der []byte
	key *ecdsa.PrivateKey
}

func newAuthority(t *testing.T, name string) *authority {
	t.Helper()
	a := &authority{t: t}
	root := a.issue(&x509.Certificate{Subject: pkix.Name{CommonName: name}, IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign})
	var err error
	if a.cert, err = x509.ParseCertificate(root.der); err != nil {
		t.Fatal(err)
	}
	a.key = root.key
	return a
}

// issue signs a certificate that is valid for an hour, unless the template says otherwise. The first one signs itself.
func (a *authority) issue(template *x509.Certificate) issued {
	a.t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		a.t.Fatal(err)
	}
	if template.SerialNumber, err = rand.Int(rand.Reader, big.NewInt(1<<62)); err != nil {
		a.t.Fatal(err)
	}
	if template.NotAfter.IsZero() {
		template.NotBefore, template.NotAfter = time.Now().Add(-time.Hour), time.Now().Add(time.Hour)
	}
	parent, signer := a.cert, a.key
	if parent == nil {
		parent, signer = template, key
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, key.Public(), signer)
	if err != nil {
		a.t.Fatal(err)
	}
	return issued{der, key}
}

// write writes the certificate and its key as PEM files.
func (i issued) write(t *testing.T, dir, name string) (certificate, key string) {
	t.Helper()
	private, err := x509.MarshalPKCS8PrivateKey(i.key)
	if err != nil {
		t.Fatal(err)
	}
	certificate, key = filepath.Join(dir, name+".pem"), filepath.Join(dir, name+".key")
	for file, block := range map[string]*pem.Block{certificate: {Type: "CERTIFICATE", Bytes: i.der}, key: {Type: "PRIVATE KEY", Bytes: private}} {
		if err := os.WriteFile(file, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return certificate, key
}

// The holder of a certificate that a named authority has signed is a super-administrator, under the name in the certificate. A certificate that
// proves nothing ends the connection, and without one a caller is anonymous.
func TestNotifyBCClientCertificates(t *testing.T) {
	dir := t.TempDir()
	ours, other := newAuthority(t, "ours"), newAuthority(t, "ours")
	forClients := []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}
	certificate, key := ours.issue(&x509.Certificate{Subject: pkix.Name{CommonName: "server"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}}).write(t, dir, "server")
	authorities, _ := issued{ours.cert.Raw, ours.key}.write(t, dir, "authorities")
	s := startNotifyBC(t, fmt.Sprintf("adminIps: [192.0.2.1]\ntls: {certificate: %q, key: %q, clientAuthorities: %q}\n", certificate, key, authorities), sink.Inject{})
	roots := x509.NewCertPool()
	roots.AddCert(ours.cert)
	ask := func(shown *issued, method, path, body string) (int, map[string]any, error) {
		settings := &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}
		if shown != nil { // whatever authorities the server asks for
			settings.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
				return &tls.Certificate{Certificate: [][]byte{shown.der}, PrivateKey: shown.key}, nil
			}
		}
		r, err := http.NewRequestWithContext(t.Context(), method, s.app.NotifyBCURL()+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		transport := &http.Transport{TLSClientConfig: settings}
		defer transport.CloseIdleConnections()
		response, err := (&http.Client{Transport: transport, Timeout: 20 * time.Second}).Do(r)
		if err != nil {
			return 0, nil, err
		}
		defer response.Body.Close()
		var answer map[string]any
		if err := json.NewDecoder(response.Body).Decode(&answer); err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		return response.StatusCode, answer, nil
	}

	robot := ours.issue(&x509.Certificate{Subject: pkix.Name{CommonName: "robot"}, ExtKeyUsage: forClients})
	if status, who, err := ask(&robot, "GET", "/administrators/whoami", ""); err != nil || status != 200 || who["role"] != "SuperAdmin" || who["securityId"] != "robot" || who["authnStrategy"] != "clientCertificate" {
		t.Errorf("the holder of a certificate is %d %v, %v", status, who, err)
	}
	const subscription = `{"serviceName":"weather","userChannelId":"ann@example.com","state":"confirmed","confirmationRequest":{"sendRequest":false}}`
	if status, made, err := ask(&robot, "POST", "/subscriptions", subscription); err != nil || status != 200 || made["state"] != "confirmed" || made["createdBy"].(map[string]any)["securityId"] != "robot" {
		t.Errorf("the holder of a certificate gets %d %v, %v", status, made, err)
	}
	if status, who, err := ask(nil, "GET", "/administrators/whoami", ""); err != nil || status != 200 || who["role"] != "Anonymous" || who["securityId"] != nil {
		t.Errorf("without a certificate, the caller is %d %v, %v", status, who, err)
	}
	if status, _, err := ask(nil, "GET", "/subscriptions/count", ""); err != nil || status != 403 {
		t.Errorf("without a certificate, a list is answered with %d, %v", status, err)
	}
	for name, wrong := range map[string]issued{
		"of another authority":        other.issue(&x509.Certificate{Subject: pkix.Name{CommonName: "robot"}, ExtKeyUsage: forClients}),
		"that has signed itself":      {other.cert.Raw, other.key},
		"that is not valid any more":  ours.issue(&x509.Certificate{Subject: pkix.Name{CommonName: "robot"}, ExtKeyUsage: forClients, NotBefore: time.Now().Add(-2 * time.Hour), NotAfter: time.Now().Add(-time.Hour)}),
		"for servers only":            ours.issue(&x509.Certificate{Subject: pkix.Name{CommonName: "robot"}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}}),
		"without the key that it has": {robot.der, other.key},
	} {
		if status, answer, err := ask(&wrong, "GET", "/administrators/whoami", ""); err == nil {
			t.Errorf("a certificate %s is answered with %d %v", name, status, answer)
		}
	}
}
