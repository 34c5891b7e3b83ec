package recipientpages

import (
	"crypto/sha256"
	"encoding/binary"
	"math/bits"
	"net/netip"
	"net/url"
	"strings"
	"sync"
	"time"

	"fanfare.dev/fanfare/internal/mail/linktoken"
)

const (
	formPurpose linktoken.Purpose = 'f'
	// formLifetime is how long a form stays valid.
	formLifetime = 2 * time.Hour
	// proofBits is the difficulty of the proof of work: 32,768 hashes on average, a few
	// tenths of a second in a browser.
	proofBits = 15
	// minFillTime is the minimum time that a person needs for the form; it applies without a proof of work.
	minFillTime = 3 * time.Second
	// maxEntries limits the entries in memory. When it is reached, new clients are rejected
	// until entries expire. Dropping entries would remove the limits of the clients that
	// filled the table.
	maxEntries = 200_000
	// minResponseTime is the minimum response time for a form, so that the time does not reveal
	// whether an address is known.
	minResponseTime = 300 * time.Millisecond
)

// rateLimit allows a burst of requests, and one more every interval.
type rateLimit struct {
	burst int64
	every time.Duration
}

// Rate limits of sign-ups. A network without proof of work has a lower one.
var (
	perNetwork             = rateLimit{20, 30 * time.Second}
	perNetworkWithoutProof = rateLimit{5, 5 * time.Minute}
	perAddress             = rateLimit{3, time.Hour}
	perService             = rateLimit{600, 500 * time.Millisecond}
)

// signupLimits applies the rate limits of the forms that need no key. It keeps a limited number
// of entries in memory, with hashes of the addresses.
type signupLimits struct {
	seals *linktoken.Key

	mu        sync.Mutex
	fullAt    map[[16]byte]int64     // when the limit is unused again, in Unix nanoseconds
	usedForms map[[16]byte]time.Time // submitted forms and their expiry
}

// A decision about a submitted form.
type decision int

const (
	allowed   decision = iota
	staleForm          // the form is too old, or was sent before
	tooFast            // the form is too new
	tooMany
	hiddenFieldFilled // it filled in the hidden field
)

// token seals the purpose of a form and the time at which it was issued.
func (d *signupLimits) token(what string, now time.Time) (string, error) {
	payload := binary.BigEndian.AppendUint64(nil, uint64(now.UnixMilli()))
	return d.seals.Seal(formPurpose, now.Add(formLifetime), append(payload, what...))
}

// decide returns the decision about a submitted form.
func (d *signupLimits) decide(from netip.Addr, service, topic string, sent url.Values, now time.Time) decision {
	if sent.Get("website") != "" {
		return hiddenFieldFilled
	}
	token := sent.Get("token")
	payload, err := d.seals.Open(formPurpose, token, now)
	if err != nil || len(payload) < 8 || string(payload[8:]) != service+"/"+topic {
		return staleForm
	}
	proven := proves(token, sent.Get("proof"))
	if given := time.UnixMilli(int64(binary.BigEndian.Uint64(payload))); !proven && now.Sub(given) < minFillTime {
		return tooFast
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.firstUse(token, now) {
		return staleForm
	}
	network := perNetwork
	if !proven {
		network = perNetworkWithoutProof
	}
	if !d.allow(network, now, "from", from.String()) || !d.allow(perService, now, "service", service) {
		return tooMany
	}
	return allowed
}

// mayMail counts an email to a normalized address and reports whether the limit of the
// address allows it. The client does not learn the result.
func (d *signupLimits) mayMail(service, to string, now time.Time) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.allow(perAddress, now, "to", service, mailbox(to))
}

// mailbox returns an address in lower case without its tag ("+tag").
func mailbox(address string) string {
	at := max(strings.LastIndexByte(address, '@'), 0)
	local, _, _ := strings.Cut(address[:at], "+")
	return strings.ToLower(local + address[at:])
}

// proves reports whether number is a proof of work for token: the SHA-256 of both begins
// with proofBits zeros.
func proves(token, number string) bool {
	if number == "" || len(number) > 12 {
		return false
	}
	sum := sha256.Sum256([]byte(token + "." + number))
	return bits.LeadingZeros64(binary.BigEndian.Uint64(sum[:])) >= proofBits
}

// firstUse reports whether the form is submitted for the first time.
func (d *signupLimits) firstUse(token string, now time.Time) bool {
	key := entryKey("form", token)
	if until, ok := d.usedForms[key]; ok && now.Before(until) {
		return false
	}
	if len(d.usedForms) >= maxEntries {
		for k, until := range d.usedForms {
			if !now.Before(until) {
				delete(d.usedForms, k)
			}
		}
		if len(d.usedForms) >= maxEntries {
			return false
		}
	}
	if d.usedForms == nil {
		d.usedForms = map[[16]byte]time.Time{}
	}
	d.usedForms[key] = now.Add(formLifetime)
	return true
}

// allow counts one request against the rate limit of who and reports whether it is allowed.
func (d *signupLimits) allow(of rateLimit, now time.Time, who ...string) bool {
	key, at := entryKey(who...), now.UnixNano()
	full := max(d.fullAt[key], at)
	if full-at > (of.burst-1)*int64(of.every) {
		return false
	}
	if len(d.fullAt) >= maxEntries {
		for k, until := range d.fullAt {
			if until <= at {
				delete(d.fullAt, k)
			}
		}
		if _, known := d.fullAt[key]; !known && len(d.fullAt) >= maxEntries {
			return false
		}
	}
	if d.fullAt == nil {
		d.fullAt = map[[16]byte]int64{}
	}
	d.fullAt[key] = full + int64(of.every)
	return true
}

func entryKey(parts ...string) (key [16]byte) {
	sum := sha256.Sum256([]byte(strings.Join(parts, "\x00")))
	copy(key[:], sum[:])
	return key
}
