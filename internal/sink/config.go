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

// The defaults of a Config, and fixed limits.
const (
	DefaultMaxMessage     = 32 << 20 // bytes
	DefaultMaxConnections = 10_000   // a further one gets 421 and is closed
	maxLine               = 4096     // bytes of a command with its line end; a longer one gets 500
	maxRecipients         = 1000     // of one message; a further one gets 452
	idleTimeout           = 5 * time.Minute
)

// The command that an injected refusal replies to (Inject.At).
const (
	AtRcpt = "rcpt" // reply to RCPT
	AtData = "data" // reply to DATA
	AtBody = "body" // reply to the final dot
)

// A Config is the configuration of a Server.
type Config struct {
	Hostname   string // in the greeting; empty: "sink.localhost"
	MaxMessage int    // bytes of a message, as received

	MaxConnections int // for SMTP, and the same number for HTTP

	// TLS offers STARTTLS with this certificate; see SelfSigned.
	TLS *tls.Config

	Inject Inject
	Hosts  []HostRule // behaviour of single destinations

	// Above is the number of messages accepted in any one second; further ones get 452 or
	// 429. 0: no limit.
	Above int

	// Secrets verify the Standard Webhooks signatures of requests: each is "whsec_" or, for
	// a public key, "whpk_", followed by base64. A request without a valid signature gets
	// 401. Empty: signatures are not verified.
	Secrets []string

	KeepFirst int // whole messages to keep from the start
	KeepLast  int // and from the end

	// Record gets one line per accepted recipient, flushed every 100 ms and by
	// Close: "unixnano\tevent\trecipient\tmessage-id\n". With RecordSync a line
	// is written before its message is answered.
	Record     io.Writer
	RecordSync bool
	RecordOnly string // a pattern of path.Match for recipients; "": all

	// Clock is the clock for messages; nil: that of the machine.
	Clock clock.Clock

	// OnMessage gets every accepted message. Connections call it concurrently; body is
	// valid until it returns.
	OnMessage func(from string, to []string, body []byte)
}

// Inject configures the faults; shares are from 0 to 1.
type Inject struct {
	Seed uint64 // equal seeds refuse the same recipients

	TempFail       float64 // share of recipients refused with 4xx at their first attempt
	TempFailAlways bool    // at every attempt
	PermFail       float64 // share of recipients refused with 5xx
	At             string  // the command that is refused; empty: AtRcpt

	Delay      time.Duration // before the reply to the final dot, or to a request
	DelayShare float64       // share of delayed messages

	DropBeforeData  float64 // share of messages whose connection is closed instead of the reply to DATA
	DropInData      float64 // the same when the body begins; the message does not count
	DropBeforeReply float64 // the same instead of the reply to the final dot; the message counts
}

// Validate rejects values that would fail later.
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
			return wrong("/"+share.name, "must be from 0 to 1, not "+strconv.FormatFloat(share.value, 'g', -1, 64))
		}
	}
	switch in.At {
	case "", AtRcpt, AtData, AtBody:
	default:
		return wrong("/at", "unknown command "+strconv.Quote(in.At))
	}
	if _, err := path.Match(c.RecordOnly, ""); err != nil {
		return wrong("/record_only", "not a valid pattern")
	}
	if c.Above < 0 || c.Above > maxRate {
		return wrong("/above", "the number of messages per second must be from 0 (no limit) to "+strconv.Itoa(maxRate))
	}
	if _, err := parseKeys(c.Secrets); err != nil {
		return err
	}
	if c.MaxMessage < 0 || c.MaxConnections < 0 || c.KeepFirst < 0 || c.KeepLast < 0 || in.Delay < 0 {
		return wrong("", "limits and delays must not be negative")
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
