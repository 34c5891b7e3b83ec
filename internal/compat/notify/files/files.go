package files

import (
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"net/netip"
	"strings"
	"time"

	"golang.org/x/text/unicode/norm"

	"fanfare.dev/fanfare/internal/clock"
	"fanfare.dev/fanfare/internal/people/pages"
	"fanfare.dev/fanfare/internal/store/control"
)

// Store stores files; *control.Store has these methods.
type Store interface {
	AddLinkedFile(ctx context.Context, f *control.LinkedFile) error
	LinkedFile(ctx context.Context, id []byte) (*control.LinkedFile, error)
	LinkedFilesOf(ctx context.Context, service string, recipient []byte) (ids [][]byte, err error)
	ExpireLinkedFiles(ctx context.Context, until int64) error
	EraseLinkedFiles(ctx context.Context, service string, recipients [][]byte) error
}

// Options are the dependencies of Files.
type Options struct {
	Store   Store
	Key     []byte                                                  // of the hashes of recipients
	Site    func(service string) (site *pages.Site, contact string) // appearance of the pages, and the contact details of the service
	Address func(*http.Request) netip.Addr                          // or network of the client
	Clock   clock.Clock
	Logger  *slog.Logger
}

// Files stores files and serves their download pages. It is safe for concurrent use.
type Files struct {
	options Options
	pages   *pages.Writer
	limits  attempts
}

// New returns the files of a store.
func New(o Options) *Files {
	return &Files{options: o, pages: pages.NewWriter(), limits: attempts{counts: map[[16]byte]count{}}}
}

// expiryInterval is the time between two removals of expired files.
const expiryInterval = 10 * time.Minute

// Run removes expired files until ctx ends.
func (f *Files) Run(ctx context.Context) {
	ticker := time.NewTicker(expiryInterval)
	defer ticker.Stop()
	for {
		if err := f.Expire(ctx); err != nil && ctx.Err() == nil {
			f.options.Logger.Warn("expired files could not be removed", "error", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

// Expire removes the files that have expired.
func (f *Files) Expire(ctx context.Context) error {
	return f.options.Store.ExpireLinkedFiles(ctx, f.options.Clock.Now().Unix())
}

// Erase removes the files of a person. names are the addresses and ids of the person.
func (f *Files) Erase(ctx context.Context, service string, names []string) error {
	var recipients [][]byte
	for _, name := range names {
		if strings.Contains(name, "@") {
			recipients = append(recipients, f.recipient(service, name))
		}
	}
	if len(recipients) == 0 {
		return nil
	}
	return f.options.Store.EraseLinkedFiles(ctx, service, recipients)
}

// recipient returns the hash of an address, which does not lead back to it.
func (f *Files) recipient(service, address string) []byte {
	mac := hmac.New(sha256.New, f.options.Key)
	mac.Write([]byte("recipient of a linked file\x00" + service + "\x00" + fold(address)))
	return mac.Sum(nil)
}

// fold returns the form in which addresses are compared.
func fold(address string) string { return strings.ToLower(norm.NFC.String(strings.TrimSpace(address))) }

// A details is what is stored of a file beside its bytes, encrypted with them.
type details struct {
	Name      string `json:"name"`
	Type      string `json:"type"`
	Ask       bool   `json:"ask"` // for the address before the download
	Recipient []byte `json:"recipient"`
}

const (
	keyBytes = 32
	pathHead = "/d/"
)

var errSealed = errors.New("the stored file is damaged, or belongs to another link")

// idOf returns the id of a file. It does not lead back to the key.
func idOf(key []byte) []byte {
	id := sha256.Sum256(append([]byte("id of a linked file\x00"), key...))
	return id[:16]
}

func aeadOf(key []byte) (cipher.AEAD, error) {
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, err
	}
	return cipher.NewGCM(block)
}

// seal encrypts a file. A key encrypts one file, so its nonce is always the same.
func seal(key []byte, d *details, content []byte) ([]byte, error) {
	head, err := json.Marshal(d)
	if err != nil {
		return nil, err
	}
	aead, err := aeadOf(key)
	if err != nil {
		return nil, err
	}
	plain := make([]byte, 0, 4+len(head)+len(content)+aead.Overhead())
	plain = binary.BigEndian.AppendUint32(plain, uint32(len(head)))
	plain = append(append(plain, head...), content...)
	return aead.Seal(plain[:0], make([]byte, aead.NonceSize()), plain, idOf(key)), nil //nolint:gosec // each key encrypts one file
}

// open decrypts a file.
func open(key, sealed []byte) (d details, content []byte, err error) {
	aead, err := aeadOf(key)
	if err != nil {
		return d, nil, err
	}
	plain, err := aead.Open(nil, make([]byte, aead.NonceSize()), sealed, idOf(key))
	if err != nil || len(plain) < 4 {
		return d, nil, errSealed
	}
	n := int(binary.BigEndian.Uint32(plain))
	if n > len(plain)-4 {
		return d, nil, errSealed
	}
	return d, plain[4+n:], json.Unmarshal(plain[4:4+n], &d)
}

// newKey returns a new key and its text in links.
func newKey() (key []byte, text string) {
	key = make([]byte, keyBytes)
	_, _ = rand.Read(key) // it never fails
	return key, base64.RawURLEncoding.EncodeToString(key)
}

// keyOf reads the text of a key in a link.
func keyOf(text string) ([]byte, bool) {
	key, err := base64.RawURLEncoding.Strict().DecodeString(text)
	return key, err == nil && len(key) == keyBytes
}
