package apppassword

import (
	"crypto/hmac"
	"crypto/pbkdf2"
	"crypto/rand"
	"crypto/sha256"
	"fmt"
	"strings"

	"fanfare.dev/fanfare/internal/mailbox"
)

const (
	// alphabet has 32 characters that are not easily confused, so that each has 5 bits.
	alphabet   = "abcdefghijkmnpqrstuvwxyz23456789"
	groups     = 4
	groupBytes = 5
	iterations = 4096 // minimum of RFC 7677, section 4
	saltBytes  = 16
)

// Generate returns a new app password, such as k7mqa-2xw9c-prth4-e8nzu.
func Generate() string {
	random := make([]byte, groups*groupBytes)
	_, _ = rand.Read(random) // never fails
	var b strings.Builder
	for i, c := range random {
		if i > 0 && i%groupBytes == 0 {
			b.WriteByte('-')
		}
		b.WriteByte(alphabet[c%byte(len(alphabet))])
	}
	return b.String()
}

// hasForm reports whether a password looks like one of Generate. Others need no check.
func hasForm(password string) bool {
	if len(password) != groups*(groupBytes+1)-1 {
		return false
	}
	for i := range len(password) {
		if dash := i%(groupBytes+1) == groupBytes; dash != (password[i] == '-') || !dash && strings.IndexByte(alphabet, password[i]) < 0 {
			return false
		}
	}
	return true
}

// Verifier returns the verifier of a password for an account with an address. others are the app passwords that the account has.
func Verifier(address, password string, others []mailbox.Credential) (mailbox.Verifier, error) {
	v := mailbox.Verifier{Salt: firstSalt(address), Iterations: iterations}
	if len(others) > 0 {
		v.Salt, v.Iterations = others[0].Salt, others[0].Iterations
	}
	keys, err := derive(password, v.Salt, v.Iterations)
	if err != nil {
		return mailbox.Verifier{}, err
	}
	v.StoredKey, v.ServerKey = keys.stored, keys.server
	return v, nil
}

// firstSalt returns the salt of an account without app passwords, and of an address without an account.
func firstSalt(address string) []byte {
	sum := sha256.Sum256([]byte("fanfare app password of " + address))
	return sum[:saltBytes]
}

// keys are the keys of RFC 5802, section 3.
type keys struct{ stored, server []byte }

func derive(password string, salt []byte, iterations int) (keys, error) {
	salted, err := pbkdf2.Key(sha256.New, password, salt, iterations, sha256.Size)
	if err != nil {
		return keys{}, fmt.Errorf("derive the keys of an app password: %w", err)
	}
	stored := sha256.Sum256(sign(salted, "Client Key"))
	return keys{stored[:], sign(salted, "Server Key")}, nil
}

func sign(key []byte, text string) []byte {
	h := hmac.New(sha256.New, key)
	h.Write([]byte(text))
	return h.Sum(nil)
}
