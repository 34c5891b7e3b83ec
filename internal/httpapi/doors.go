package httpapi

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
	// fillFor is how long a form can be sent.
	fillFor = 2 * time.Hour
	// proofBits is how much a browser has to look for: 32,768 hashes on average, some
	// tenths of a second.
	proofBits = 15
	// slowly is how long people need for the form where no script has done the work.
	slowly = 3 * time.Second
	// maxDoors bounds what is remembered of whoever came; beyond, nobody else is let in
	// until some of it is over. To forget would open the doors to who has filled them.
	maxDoors = 200_000
	// evenly is how long the answer to a form takes at least: how much there was to do
	// for an address is not to be seen from outside.
	evenly = 300 * time.Millisecond
)

// A door is what is taken in at a rate: so many at once, and one more each interval.
type door struct {
	burst int64
	every time.Duration
}

// The rates of sign-ups. Of a network without proof there are fewer.
var (
	perNetwork = door{20, 30 * time.Second}
	perUnproof = door{5, 5 * time.Minute}
	perAddress = door{3, time.Hour}
	perService = door{600, 500 * time.Millisecond}
)

// doors keep floods out of the forms that need no key. What they know is in memory,
// and bounded; addresses are hashes in it.
type doors struct {
	seals *linktoken.Key

	mu    sync.Mutex
	full  map[[16]byte]int64     // until when a door is used up, in Unix nanoseconds
	spent map[[16]byte]time.Time // forms that were sent, and when they end
}

// An entry says who is let in.
type entry int

const (
	welcome  entry = iota
	tooQuick       // the form is too old, or was sent before
	tooSoon        // the form is too new
	tooMany
	robot // it filled in what nobody sees
)

// token seals what a form is for and when it was given out.
func (d *doors) token(what string, now time.Time) (string, error) {
	payload := binary.BigEndian.AppendUint64(nil, uint64(now.UnixMilli()))
	return d.seals.Seal(filling, now.Add(fillFor), append(payload, what...))
}

// enter decides about one form.
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

// mayMail counts one more mail to an address in normal form, unless its owner has had
// enough of them. Who asked for it is not told.
func (d *doors) mayMail(service, to string, now time.Time) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.pass(perAddress, now, "to", service, mailbox(to))
}

// mailbox is what many spellings of an address lead to.
func mailbox(address string) string {
	at := max(strings.LastIndexByte(address, '@'), 0)
	local, _, _ := strings.Cut(address[:at], "+")
	return strings.ToLower(local + address[at:])
}

// proves reports whether a number was looked for: the SHA-256 of token and number
// begins with proofBits zeros.
func proves(token, number string) bool {
	if number == "" || len(number) > 12 {
		return false
	}
	sum := sha256.Sum256([]byte(token + "." + number))
	return bits.LeadingZeros64(binary.BigEndian.Uint64(sum[:])) >= proofBits
}

// once is true for the first time that a form is sent.
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

// pass takes one of what a door has, by the clock of its last ones.
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
