package accounts

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"regexp"
	"strings"

	"golang.org/x/crypto/argon2"
	"golang.org/x/crypto/bcrypt"
)

// Parameters of Argon2id: the second choice of OWASP's recommendation, which suits a server with little memory.
const (
	argonMemoryKB = 19 << 10
	argonTime     = 2
	argonBytes    = 32
	saltBytes     = 16
)

// Limits of a password.
const (
	minPasswordBytes = 10
	maxPasswordBytes = 256
)

// maxBcryptCost limits the time that an imported hash can make a login take.
const maxBcryptCost = 14

var passwordClasses = []*regexp.Regexp{
	regexp.MustCompile(`[A-Z]`), regexp.MustCompile(`[a-z]`), regexp.MustCompile(`[0-9]`), regexp.MustCompile(`[!_@#&$*]`),
}

// isStrong reports whether a password has the form that NotifyBC requires: 10 characters, with upper and lower case, a digit and
// one of !_@#&$*.
func isStrong(password string) bool {
	if len(password) < minPasswordBytes || len(password) > maxPasswordBytes {
		return false
	}
	for _, class := range passwordClasses {
		if !class.MatchString(password) {
			return false
		}
	}
	return true
}

// A hasher hashes passwords, a few at a time.
type hasher chan struct{}

func newHasher() hasher { return make(hasher, 4) }

// begin waits for its turn.
func (h hasher) begin(ctx context.Context) error {
	select {
	case h <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (h hasher) end() { <-h }

// hash returns the hash of a password.
func (h hasher) hash(ctx context.Context, password string) (string, error) {
	if err := h.begin(ctx); err != nil {
		return "", err
	}
	defer h.end()
	salt := make([]byte, saltBytes)
	_, _ = rand.Read(salt) // never fails
	key := argon2.IDKey([]byte(password), salt, argonTime, argonMemoryKB, 1, argonBytes)
	return fmt.Sprintf("$argon2id$v=%d$m=%d,t=%d,p=1$%s$%s", argon2.Version, argonMemoryKB, argonTime,
		base64.RawStdEncoding.EncodeToString(salt), base64.RawStdEncoding.EncodeToString(key)), nil
}

// matches reports whether a password has a hash. With the empty hash it takes the same time, and is false.
func (h hasher) matches(ctx context.Context, password, hash string) (bool, error) {
	if len(password) > maxPasswordBytes {
		return false, nil
	}
	if err := h.begin(ctx); err != nil {
		return false, err
	}
	defer h.end()
	if strings.HasPrefix(hash, "$2") {
		if CheckHash(hash) != nil || len(password) > 72 { // more than bcrypt reads
			return false, nil
		}
		return bcrypt.CompareHashAndPassword([]byte(hash), []byte(password)) == nil, nil
	}
	salt, want := make([]byte, saltBytes), make([]byte, argonBytes)
	if parts := strings.Split(hash, "$"); len(parts) == 6 {
		salt, _ = base64.RawStdEncoding.DecodeString(parts[4])
		want, _ = base64.RawStdEncoding.DecodeString(parts[5])
	}
	key := argon2.IDKey([]byte(password), salt, argonTime, argonMemoryKB, 1, argonBytes)
	return subtle.ConstantTimeCompare(key, want) == 1 && hash != "", nil
}

// CheckHash returns an error if an imported hash is not one of bcrypt, or takes too long.
func CheckHash(hash string) error {
	cost, err := bcrypt.Cost([]byte(hash))
	switch {
	case err != nil:
		return errors.New("the hash is not one of bcrypt")
	case cost > maxBcryptCost:
		return fmt.Errorf("the hash has the cost %d; at most %d is supported", cost, maxBcryptCost)
	}
	return nil
}

const (
	tokenCharacters = 64
	tokenAlphabet   = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
)

// newToken returns 64 random characters of A-Z, a-z and 0-9.
func newToken() string {
	text := make([]byte, 0, tokenCharacters)
	var b [128]byte
	for {
		_, _ = rand.Read(b[:]) // never fails
		for _, c := range b {
			if int(c) < 256-256%len(tokenAlphabet) { // so that all characters are equally likely
				if text = append(text, tokenAlphabet[int(c)%len(tokenAlphabet)]); len(text) == tokenCharacters {
					return string(text)
				}
			}
		}
	}
}

// TokenID returns the id under which a token is stored.
func TokenID(token string) string {
	hash := sha256.Sum256([]byte(token))
	return hex.EncodeToString(hash[:])
}
