package imap

import "time"

// Limits are the limits of a server. A zero value means the default.
type Limits struct {
	Connections           int           // in total; 20,000
	UnauthenticatedConns  int           // that have not logged in; 2,000
	UnauthenticatedPerNet int           // of these, of one IPv4 address or one IPv6 network of 64 bits; 200
	ConnectionsPerAccount int           // 100
	MaxMessageBytes       int64         // of APPEND; 50 MiB
	LoginTimeout          time.Duration // from the connection to the login; 2 minutes
	IdleTimeout           time.Duration // without a command; 30 minutes (RFC 9051, section 5.4)
	FailureDelay          time.Duration // before the response to a failed login, doubled with each further one; 1 second
	LargeMessageBytes     int64         // of all large messages that are being received or sent; 256 MiB
}

const (
	defaultConnections           = 20_000
	defaultUnauthenticated       = 2_000
	defaultUnauthenticatedPerNet = 200
	defaultPerAccount            = 100
	defaultMaxMessageBytes       = 50 << 20
	defaultLoginTimeout          = 2 * time.Minute
	defaultIdleTimeout           = 30 * time.Minute
	defaultFailureDelay          = time.Second
	defaultLargeMessageBytes     = 256 << 20

	inputBytes             = 1 << 10  // buffer of a waiting connection
	maxLineBytes           = 64 << 10 // of the lines of one command
	maxLineBytesBefore     = 8 << 10  // the same before the login
	maxLiteralBytes        = 64 << 10 // of the literals of a command other than APPEND
	maxLiteralBytesBefore  = 4 << 10
	maxLiterals            = 1000        // of one command
	maxDiscardBytes        = 256 << 20   // of a literal that is refused and sent all the same
	smallMessageBytes      = 64 << 10    // smaller ones do not count for LargeMessageBytes
	outputBytes            = 32 << 10    // from which responses are sent
	commandTimeout         = time.Minute // for the next bytes of a command that has begun
	writeTimeout           = time.Minute
	handshakeTimeout       = time.Minute
	closeTimeout           = time.Second
	claimTimeout           = 5 * time.Second  // to store at the end of a session which messages are not recent
	memoryWait             = 30 * time.Second // for memory for a large message
	maxConsecutiveFailures = 20               // BAD responses, after which the connection ends
	maxFailuresBefore      = 5                // BAD responses and failed logins before the login
	maxFailureDelay        = 15 * time.Second
	commandBytesKept       = 4 << 10 // a larger buffer is not kept between commands
)

func orDefault[T comparable](v *T, d T) {
	var zero T
	if *v == zero {
		*v = d
	}
}

func (l *Limits) setDefaults() {
	orDefault(&l.Connections, defaultConnections)
	orDefault(&l.UnauthenticatedConns, defaultUnauthenticated)
	orDefault(&l.UnauthenticatedPerNet, defaultUnauthenticatedPerNet)
	orDefault(&l.ConnectionsPerAccount, defaultPerAccount)
	orDefault(&l.MaxMessageBytes, defaultMaxMessageBytes)
	orDefault(&l.LoginTimeout, defaultLoginTimeout)
	orDefault(&l.IdleTimeout, defaultIdleTimeout)
	orDefault(&l.FailureDelay, defaultFailureDelay)
	orDefault(&l.LargeMessageBytes, defaultLargeMessageBytes)
}
