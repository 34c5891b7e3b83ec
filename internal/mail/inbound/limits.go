package inbound

import "time"

// The limits. They are at least the minimums of RFC 5321, sections 4.5.3.1 and 4.5.3.2.
const (
	MaxMessageBytes = 1 << 20
	MaxRecipients   = 100

	// Of messages beyond smallBytes so many are in memory at a time: else whoever has
	// some networks fills it with messages that he does not end.
	smallBytes = 64 << 10
	maxLarge   = 64

	maxCommandBytes = 2048     // of a command line with CR LF; extensions add to the 512 of RFC 5321
	maxTextBytes    = 16 << 10 // of a line of a message; RFC 5321 has 1000, and some programs write more
	maxRefused      = 10       // commands without success in a session
	maxMessages     = 1000     // in a session
	maxExcessBytes  = 16 << 20 // of a message that is too large, until its end is not awaited any more

	defaultConnections       = 500
	defaultConnectionsPerNet = 50

	commandTimeout  = 5 * time.Minute
	dataTimeout     = 3 * time.Minute  // for the next bytes of a message
	messageTimeout  = 10 * time.Minute // for a whole one
	writeTimeout    = time.Minute
	handshakeExpiry = time.Minute
	partingTimeout  = 2 * time.Second
	sessionTimeout  = 30 * time.Minute
	takeTimeout     = 2 * time.Minute // the peer waits for ten
)
