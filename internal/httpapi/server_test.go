package httpapi

import (
	"bufio"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"fanfare.dev/fanfare/internal/httpapi/httpio"
	"fanfare.dev/fanfare/internal/httpapi/listener"
	"fanfare.dev/fanfare/internal/httpapi/problem"
)

func TestServerAnswersWhileEverythingLoads(t *testing.T) {
	s, err := listener.Listen(listener.Options{Address: "127.0.0.1:0"})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Shutdown(t.Context())
	status := func(path string) (int, http.Header) {
		response, err := impatient().Get("http://" + s.Addr().String() + path)
		if err != nil {
			t.Fatal(err)
		}
		response.Body.Close()
		return response.StatusCode, response.Header
	}
	if code, _ := status("/healthz"); code != 200 {
		t.Errorf("healthz is %d", code)
	}
	for _, path := range []string{"/readyz", "/v1/status"} {
		if code, header := status(path); code != 503 || header.Get("Retry-After") == "" || header.Get("Content-Type") != problem.MediaType {
			t.Errorf("%s is %d %v", path, code, header)
		}
	}
	s.Open(newWorld().api())
	if code, _ := status("/readyz"); code != 200 {
		t.Errorf("readyz is %d when open", code)
	}
}

func TestShutdownMayBeCalledTwice(t *testing.T) {
	s, err := listener.Listen(listener.Options{Address: "127.0.0.1:0"})
	if err != nil {
		t.Fatal(err)
	}
	s.Open(newWorld().api())
	for range 2 {
		if err := s.Shutdown(t.Context()); err != nil {
			t.Error(err)
		}
	}
	select {
	case <-s.Done():
	default:
		t.Error("is not done after Shutdown")
	}
	if s.Err() != nil {
		t.Error(s.Err())
	}
	if _, err := net.Dial("tcp", s.Addr().String()); err == nil {
		t.Error("listens after Shutdown")
	}
}

func TestShutdownWaitsForTheRequestUnderWay(t *testing.T) {
	w := newWorld()
	w.holdPuts = make(chan struct{})
	address, s := live(t, w)
	answer := make(chan string, 1)
	go func() {
		r, _ := http.NewRequest("POST", "http://"+address+"/v1/subscriptions", strings.NewReader(oneSub))
		r.Header.Set("Authorization", "Bearer "+adminSecret)
		response, err := impatient().Do(r)
		if err != nil {
			answer <- err.Error()
			return
		}
		response.Body.Close()
		answer <- response.Status
	}()
	w.holdPuts <- struct{}{} // it is inside; let the put go on only now
	if err := s.Shutdown(t.Context()); err != nil {
		t.Error(err)
	}
	if got := <-answer; got != "201 Created" {
		t.Errorf("got %s", got)
	}
}

// certificate writes a key pair for 127.0.0.1.
func certificate(t *testing.T) (cert, key string, roots *x509.CertPool) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test"}, NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature}
	der, err := x509.CreateCertificate(rand.Reader, template, template, private.Public(), private)
	if err != nil {
		t.Fatal(err)
	}
	parsed, _ := x509.ParseCertificate(der)
	roots = x509.NewCertPool()
	roots.AddCert(parsed)
	secret, _ := x509.MarshalPKCS8PrivateKey(private)
	cert, key = filepath.Join(t.TempDir(), "cert.pem"), filepath.Join(t.TempDir(), "key.pem")
	os.WriteFile(cert, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o600)
	os.WriteFile(key, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: secret}), 0o600)
	return cert, key, roots
}

func TestImportStreamsOverTLSAndHTTP2(t *testing.T) {
	cert, key, roots := certificate(t)
	w := newWorld()
	s, err := listener.Listen(listener.Options{Address: "127.0.0.1:0", Cert: cert, Key: key})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Shutdown(t.Context())
	s.Open(w.api())
	client := &http.Client{Transport: &http.Transport{ForceAttemptHTTP2: true, TLSClientConfig: &tls.Config{RootCAs: roots}}}
	out, in := io.Pipe()
	r, _ := http.NewRequestWithContext(t.Context(), "POST", "https://"+s.Addr().String()+"/v1/subscriptions", out)
	r.Header.Set("Authorization", "Bearer "+adminSecret)
	r.Header.Set("Content-Type", httpio.NDJSON)
	go io.WriteString(in, sub("one"))
	response, err := client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	read := bufio.NewReader(response.Body)
	if first, _ := read.ReadString('\n'); response.ProtoMajor != 2 || !strings.Contains(first, `"one"`) {
		t.Errorf("%s: %s", response.Proto, first)
	}
	go func() {
		for i := range 20_000 {
			io.WriteString(in, sub(fmt.Sprint("id-", i)))
		}
		in.Close()
	}()
	if got := lines(t, read); len(got) != 20_000 {
		t.Errorf("%d answers", len(got))
	}
}

func TestPanicInTheMiddleOfAnAnswerCutsIt(t *testing.T) {
	a := newWorld().api()
	a.mux.HandleFunc("GET /cut", func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(200)
		io.WriteString(w, "half of it")
		panic("boom")
	})
	s, err := listener.Listen(listener.Options{Address: "127.0.0.1:0"})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Shutdown(context.WithoutCancel(t.Context()))
	s.Open(a)
	response, err := impatient().Get("http://" + s.Addr().String() + "/cut")
	if err == nil {
		_, err = io.ReadAll(response.Body)
	}
	if err == nil {
		t.Error("half an answer passes for a whole one")
	}
	if response, err := impatient().Get("http://" + s.Addr().String() + "/healthz"); err != nil || response.StatusCode != 200 {
		t.Errorf("the server does not go on: %v", err)
	}
}
