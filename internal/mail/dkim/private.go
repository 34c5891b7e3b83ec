package dkim

import (
	"bytes"
	"crypto"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"sync/atomic"

	"fanfare.dev/fanfare"
)

// Algorithms of keys, as in k= of a DNS record.
const (
	Ed25519 = "ed25519"
	RSA     = "rsa"
)

// Lengths of RSA keys in bits. Verifiers accept 1024 to 4096 (RFC 8301, section 3.2), and signers
// should use 2048.
const (
	leastBits  = 1024
	NormalBits = 2048
	mostBits   = 4096
)

// maxPrivateBytes is the maximum size of a key file.
const maxPrivateBytes = 16 << 10

// Private is a private key. Functions hide its secret, so that printing, logging or encoding a
// Private cannot reveal it.
type Private struct {
	algorithm string
	bits      int    // of an RSA key
	size      int    // of a signature, in bytes
	public    []byte // as in p= of a DNS record
	sign      func(digest *[sha256.Size]byte) ([]byte, error)
	verify    func(digest *[sha256.Size]byte, signature []byte) bool // nil: a signature is not slow
	encode    func() ([]byte, error)
	made      atomic.Int64
}

// Algorithm is Ed25519 or RSA.
func (p *Private) Algorithm() string { return p.algorithm }

// Bits is the length of an RSA key; 0 for Ed25519.
func (p *Private) Bits() int { return p.bits }

// Made returns the number of signatures made with the key.
func (p *Private) Made() int64 { return p.made.Load() }

// PEM returns the key in PKCS #8, as a file stores it.
func (p *Private) PEM() ([]byte, error) { return p.encode() }

// Generate creates an Ed25519 key, or an RSA key of NormalBits.
func Generate(algorithm string) (*Private, error) {
	switch algorithm {
	case Ed25519:
		_, key, err := ed25519.GenerateKey(rand.Reader)
		if err != nil {
			return nil, err
		}
		return newEd25519(key), nil
	case RSA:
		key, err := rsa.GenerateKey(rand.Reader, NormalBits)
		if err != nil {
			return nil, err
		}
		return newRSA(key)
	}
	return nil, unusable("use ed25519 or rsa", "unknown key type %q", algorithm)
}

// ParsePrivate reads a key: PEM with PKCS #8, PEM with PKCS #1 for RSA, or only an Ed25519 seed of
// 32 bytes in Base64, as dknewkey writes it.
func ParsePrivate(text []byte) (*Private, error) {
	if len(text) > maxPrivateBytes {
		return nil, unusable("use a file that contains only the private key", "the key is larger than %d bytes", maxPrivateBytes)
	}
	block, _ := pem.Decode(text)
	if block == nil {
		return parseSeed(text)
	}
	switch block.Type {
	case "PRIVATE KEY":
		key, err := x509.ParsePKCS8PrivateKey(block.Bytes)
		if err != nil {
			return nil, unusable(mendKey, "the key is not valid PKCS #8")
		}
		switch key := key.(type) {
		case ed25519.PrivateKey:
			return newEd25519(key), nil
		case *rsa.PrivateKey:
			return newRSA(key)
		}
		return nil, unusable(mendKey, "the key is neither Ed25519 nor RSA")
	case "RSA PRIVATE KEY":
		key, err := x509.ParsePKCS1PrivateKey(block.Bytes)
		if err != nil {
			return nil, unusable(mendKey, "the key is not valid PKCS #1 or is protected by a password")
		}
		return newRSA(key)
	}
	return nil, unusable(mendKey, "the PEM block has the type %q, but a private key is required", block.Type)
}

const mendKey = "create a key with `fanfare dkim new`"

func unusable(hint, format string, args ...any) error {
	return &fanfare.Error{Code: fanfare.Invalid, Message: fmt.Sprintf(format, args...), Hint: hint}
}

func parseSeed(text []byte) (*Private, error) {
	seed, err := base64.StdEncoding.AppendDecode(nil, bytes.TrimSpace(text))
	if err != nil || len(seed) != ed25519.SeedSize {
		return nil, unusable(mendKey, "the text is neither a PEM private key nor a Base64-encoded Ed25519 seed")
	}
	return newEd25519(ed25519.NewKeyFromSeed(seed)), nil
}

func newEd25519(key ed25519.PrivateKey) *Private {
	return &Private{
		algorithm: Ed25519, size: ed25519.SignatureSize, public: key.Public().(ed25519.PublicKey),
		// RFC 8463, section 3: the hash is signed, and Ed25519 hashes it again.
		sign:   func(digest *[sha256.Size]byte) ([]byte, error) { return ed25519.Sign(key, digest[:]), nil },
		encode: func() ([]byte, error) { return encodeKey(key) },
	}
}

func newRSA(key *rsa.PrivateKey) (*Private, error) {
	bits := key.N.BitLen()
	if bits < leastBits || bits > mostBits {
		return nil, unusable("use a 2048-bit key", "the RSA key has %d bits, but verifiers accept only %d to %d", bits, leastBits, mostBits)
	}
	public, err := x509.MarshalPKIXPublicKey(&key.PublicKey)
	if err != nil {
		return nil, unusable(mendKey, "the RSA key cannot be used")
	}
	key.Precompute()
	return &Private{
		algorithm: RSA, bits: bits, size: key.Size(), public: public,
		sign: func(digest *[sha256.Size]byte) ([]byte, error) {
			return rsa.SignPKCS1v15(nil, key, crypto.SHA256, digest[:])
		},
		verify: func(digest *[sha256.Size]byte, signature []byte) bool {
			return rsa.VerifyPKCS1v15(&key.PublicKey, crypto.SHA256, digest[:], signature) == nil
		},
		encode: func() ([]byte, error) { return encodeKey(key) },
	}, nil
}

func encodeKey(key any) ([]byte, error) {
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, err
	}
	return pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}), nil
}
