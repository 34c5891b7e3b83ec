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
	filling linktoken.Purpose = 'f'
	// fillFor is how long a form stays valid.
	fillFor = 2 * time.Hour
	// proofBits is how much a browser has to look for: 32,768 hashes on average, some
	// tenths of a second.
	proofBits = 15
	// slowly is the least time that a person needs for the form; it applies without proof.
	slowly = 3 * time.Second
	// maxDoors limits the entries in memory. When it is reached, new clients are rejected
	// until entries expire: to drop entries would lift the limits of the clients that
	// filled the table.
	maxDoors = 200_000
	// evenly is the least duration of the response to a form, so that its duration does
	// not reveal whether an address is known.
	evenly = 300 * time.Millisecond
)

// A door is a rate limit: burst requests at once, and one more every interval.
type door struct {
	burst int64
	every time.Duration
}

// Rate limits of sign-ups. A network without proof of work has a lower one.
var (
	perNetwork = door{20, 30 * time.Second}
	perUnproof = door{5, 5 * time.Minute}
	perAddress = door{3, time.Hour}
	perService = door{600, 500 * time.Millisecond}
)

// doors apply the rate limits of the forms that need no key. They keep a limited number
// of entries in memory, with hashes of the addresses.
type doors struct {
	seals *linktoken.Key

	mu    sync.Mutex
	full  map[[16]byte]int64     // when the limit is unused again, in Unix nanoseconds
	spent map[[16]byte]time.Time // submitted forms and their expiry
}

// An entry is the decision about a submitted form.
type entry int

const (
	welcome  entry = iota
	tooQuick       // the form is too old, or was sent before
	tooSoon        // the form is too new
	tooMany
	robot // it filled in the hidden field
)

// token seals the purpose of a form and the time at which it was issued.
func (d *doors) token(what string, now time.Time) (string, error) {
	payload := binary.BigEndian.AppendUint64(nil, uint64(now.UnixMilli()))
	return d.seals.Seal(filling, now.Add(fillFor), append(payload, what...))
}

// enter decides about a submitted form.
func (d *doors) enter(from netip.Addr, service, topic string, sent url.Values, now time.Time) entry {
	if sent.Get("website") != "" {
		return robot
	}
	token := sent.Get("token")
	payload, err := d.seals.Open(filling, token, now)
	if err != nil || len(payload) < 8 || string(payload[8:]) != service+"/"+topic {
		return tooQuick
	}
	proven := proves(token, sent.Get("proof"))
	if given := time.UnixMilli(int64(binary.BigEndian.Uint64(payload))); !proven && now.Sub(given) < slowly {
		return tooSoon
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.once(token, now) {
		return tooQuick
	}
	network := perNetwork
	if !proven {
		network = perUnproof
	}
	if !d.pass(network, now, "from", from.String()) || !d.pass(perService, now, "service", service) {
		return tooMany
	}
	return welcome
}

// mayMail counts a mail to a normalized address and reports whether the limit of the
// address allows it. The client does not learn the result.
func (d *doors) mayMail(service, to string, now time.Time) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.pass(perAddress, now, "to", service, mailbox(to))
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

// once reports whether the form is submitted for the first time.
func (d *doors) once(token string, now time.Time) bool {
	key := whoOf("form", token)
	if until, ok := d.spent[key]; ok && now.Before(until) {
		return false
	}
	if len(d.spent) >= maxDoors {
		for k, until := range d.spent {
			if !now.Before(until) {
				delete(d.spent, k)
			}
		}
		if len(d.spent) >= maxDoors {
			return false
		}
	}
	if d.spent == nil {
		d.spent = map[[16]byte]time.Time{}
	}
	d.spent[key] = now.Add(fillFor)
	return true
}

// pass takes one request from the rate limit of who and reports whether it is allowed.
func (d *doors) pass(of door, now time.Time, who ...string) bool {
	key, at := whoOf(who...), now.UnixNano()
	full := max(d.full[key], at)
	if full-at > (of.burst-1)*int64(of.every) {
		return false
	}
	if len(d.full) >= maxDoors {
		for k, until := range d.full {
			if until <= at {
				delete(d.full, k)
			}
		}
		if _, known := d.full[key]; !known && len(d.full) >= maxDoors {
			return false
		}
	}
	if d.full == nil {
		d.full = map[[16]byte]int64{}
	}
	d.full[key] = full + int64(of.every)
	return true
}

func whoOf(parts ...string) (key [16]byte) {
	sum := sha256.Sum256([]byte(strings.Join(parts, "\x00")))
	copy(key[:], sum[:])
	return key
}
