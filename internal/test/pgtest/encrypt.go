package pgtest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"
)

// Encrypt restarts the server with a certificate of its own for 127.0.0.1, so
// that it takes connections with TLS as well, and returns the file with which that
// can be verified.
func (s *Server) Encrypt() (root string) {
	s.t.Helper()
	certificate, key, err := certify()
	s.must(err)
	data := s.cluster.data()
	s.must(os.WriteFile(filepath.Join(data, "server.crt"), certificate, 0o600))
	s.must(os.WriteFile(filepath.Join(data, "server.key"), key, 0o600))
	for _, name := range []string{"server.crt", "server.key"} {
		s.must(s.cluster.own(filepath.Join(data, name)))
	}
	s.cluster.settings = append(s.cluster.settings, "ssl=on")
	s.must(s.cluster.Restart())
	root = filepath.Join(s.t.TempDir(), "root.crt")
	s.must(os.WriteFile(root, certificate, 0o600))
	return root
}

// certify makes a certificate that vouches for itself, as PEM.
func certify() (certificate, key []byte, err error) {
	secret, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, err
	}
	now := time.Now()
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: now.Add(-time.Hour), NotAfter: now.Add(24 * time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}}
	der, err := x509.CreateCertificate(rand.Reader, template, template, secret.Public(), secret)
	if err != nil {
		return nil, nil, err
	}
	pkcs8, err := x509.MarshalPKCS8PrivateKey(secret)
	if err != nil {
		return nil, nil, err
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: pkcs8}), nil
}
