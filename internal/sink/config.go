package sink

import (
	"crypto/tls"
	"io"
	"path"
	"strconv"
	"time"

	fanfare "fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/clock"
)

// The limits of a Config that leaves them 0, and those that are fixed.
const (
	DefaultMaxMessage     = 32 << 20 // bytes
	DefaultMaxConnections = 10_000   // one more is answered 421 and closed
	maxLine               = 4096     // bytes of a command with its line end; a longer one is answered 500
	maxRecipients         = 1000     // of one message; one more is answered 452
	idleTimeout           = 5 * time.Minute
)

// Where an injected refusal strikes (Inject.At).
const (
	AtRcpt = "rcpt" // the answer to RCPT
	AtData = "data" // the answer to DATA
	AtBody = "body" // the answer to the final dot
)

// A Config says what a Server does with what it takes.
type Config struct {
	Hostname   string // in the greeting; "sink.localhost" where empty
	MaxMessage int    // bytes of a message, as received

	MaxConnections int // of mail, and as many for requests

	// TLS offers STARTTLS with this certificate; see SelfSigned.
	TLS *tls.Config

	Inject Inject
	Hosts  []HostRule // how single destinations behave

	// Above is how many messages are taken in any one second; what is more is
	// refused 452, or 429, when it is there. 0: all are.
	Above int

	// Secrets verify the Standard Webhooks signatures of requests, each "whsec_"
	// or, for a public key, "whpk_" and base64; a request that none of them fits is
	// answered 401. Empty: none is verified.
	Secrets []string

	KeepFirst int // keep that many whole messages from the start
	KeepLast  int // and that many from the end

	// Record gets a line per accepted recipient, flushed every 100 ms and on
	// Close: "unixnano\tevent\trecipient\tmessage-id\n". With RecordSync a line
	// is written before its message is answered.
	Record     io.Writer
	RecordSync bool
	RecordOnly string // only recipients that fit this pattern of path.Match; "": all

	// Clock tells when a message came; that of the machine where nil.
	Clock clock.Clock

	// OnMessage sees every accepted message. It is called by the connection,
	// concurrently; body is valid until it returns.
	OnMessage func(from string, to []string, body []byte)
}

// Inject is what goes wrong on purpose, each a share from 0 to 1.
type Inject struct {
	Seed uint64 // equal seeds refuse the same recipients

	TempFail       float64 // recipients refused 4xx at their first attempt
	TempFailAlways bool    // at every attempt
	PermFail       float64 // recipients refused 5xx
	At             string  // where refusals strike; AtRcpt where empty

	Delay      time.Duration // wait before the answer to the final dot, or to a request
	DelayShare float64       // of the messages

	DropBeforeData  float64 // messages: hang up in place of the answer to DATA
	DropInData      float64 // messages: hang up when the body begins; it does not count
	DropBeforeReply float64 // messages: hang up in place of the answer to the final dot; it counts
}

// Validate finds what makes no sense.
func (c Config) Validate() error {
	wrong := func(pointer, message string) error {
		return &fanfare.Error{Code: fanfare.Invalid, Pointer: pointer, Message: message}
	}
	in := c.Inject
	for _, share := range []struct {
		name  string
		value float64
	}{
		{"temp_fail", in.TempFail}, {"perm_fail", in.PermFail}, {"delay_share", in.DelayShare},
		{"drop_before_data", in.DropBeforeData}, {"drop_in_data", in.DropInData}, {"drop_before_reply", in.DropBeforeReply},
	} {
		if !(share.value >= 0 && share.value <= 1) {
			return wrong("/"+share.name, "a share is from 0 to 1, not "+strconv.FormatFloat(share.value, 'g', -1, 64))
		}
	}
	switch in.At {
	case "", AtRcpt, AtData, AtBody:
	default:
		return wrong("/at", "unknown place "+strconv.Quote(in.At))
	}
	if _, err := path.Match(c.RecordOnly, ""); err != nil {
		return wrong("/record_only", "not a pattern of recipients")
	}
	if c.Above < 0 || c.Above > maxRate {
		return wrong("/above", "messages a second are from 0 (no limit) to "+strconv.Itoa(maxRate))
	}
	if _, err := parseKeys(c.Secrets); err != nil {
		return err
	}
	if c.MaxMessage < 0 || c.MaxConnections < 0 || c.KeepFirst < 0 || c.KeepLast < 0 || in.Delay < 0 {
		return wrong("", "a limit is negative")
	}
	return nil
}

func (c Config) withDefaults() Config {
	if c.Hostname == "" {
		c.Hostname = "sink.localhost"
	}
	if c.Clock == nil {
		c.Clock = clock.System{}
	}
	if c.MaxMessage == 0 {
		c.MaxMessage = DefaultMaxMessage
	}
	if c.MaxConnections == 0 {
		c.MaxConnections = DefaultMaxConnections
	}
	if c.Inject.At == "" {
		c.Inject.At = AtRcpt
	}
	return c
}
