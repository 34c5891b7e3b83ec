package registry

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/json"
	"strconv"
	"strings"
	"sync"

	"fanfare.dev/fanfare"
)

// A secret is 32 random bytes, so that a plain hash of it cannot be guessed
// back: no slow one is needed, and none is paid for with each request.
const (
	secretPrefix = "ff_"
	secretBytes  = 32
)

// keyBody is what is kept of a key: never the secret.
type keyBody struct {
	Hash []byte `json:"hash"` // SHA-256 of the secret's text
}

// principals finds who a secret belongs to.
type principals struct {
	mu   sync.RWMutex
	all  map[[sha256.Size]byte]Principal
	last uint32 // number of the last key
}

func (p *principals) add(number uint32, hash [sha256.Size]byte, who Principal) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.all == nil {
		p.all = map[[sha256.Size]byte]Principal{}
	}
	p.all[hash] = who
	p.last = max(p.last, number)
}

// CreateKey makes a key for one service, or with service "" for all (admin), and
// returns its secret. This is the only time that it is seen.
func (r *Registry) CreateKey(ctx context.Context, service, name string) (secret string, err error) {
	var raw [secretBytes]byte
	rand.Read(raw[:]) // never fails
	secret = secretPrefix + base64.RawURLEncoding.EncodeToString(raw[:])
	hash := sha256.Sum256([]byte(secret))
	body, err := json.Marshal(keyBody{Hash: hash[:]})
	if err != nil {
		return "", err
	}
	err = r.writer.submit(ctx, &job{run: func(w *writer) error {
		record := ConfigRecord{Kind: kindKey, Number: r.principals.last + 1, Name: name, Body: body}
		if service != "" {
			svc, err := r.config.Load().service(service)
			if err != nil {
				return err
			}
			record.Service = svc.number
		}
		if err := r.commit(&Batch{Config: []ConfigRecord{record}}); err != nil {
			return err
		}
		r.principals.add(record.Number, hash, Principal{KeyID: keyID(record.Number), Name: name, Service: service})
		return nil
	}})
	if err != nil {
		return "", err
	}
	return secret, nil
}

func keyID(number uint32) string { return "key-" + strconv.FormatUint(uint64(number), 10) }

// Authenticate returns who the secret belongs to. The table is keyed by the
// SHA-256 of the secret, so that the time of a look-up tells nothing about it.
func (r *Registry) Authenticate(secret string) (Principal, bool) {
	if !strings.HasPrefix(secret, secretPrefix) {
		return Principal{}, false
	}
	hash := sha256.Sum256([]byte(secret))
	r.principals.mu.RLock()
	defer r.principals.mu.RUnlock()
	for known, who := range r.principals.all {
		if subtle.ConstantTimeCompare(known[:], hash[:]) == 1 {
			return who, true
		}
	}
	return Principal{}, false
}

func (r *Registry) loadKey(s *snapshot, c *ConfigRecord) error {
	var body keyBody
	if err := json.Unmarshal(c.Body, &body); err != nil {
		return err
	}
	if len(body.Hash) != sha256.Size {
		return &fanfare.Error{Code: fanfare.Internal, Message: "the kept hash is damaged"}
	}
	r.principals.add(c.Number, [sha256.Size]byte(body.Hash), Principal{KeyID: keyID(c.Number), Name: c.Name, Service: s.names[c.Service]})
	return nil
}
