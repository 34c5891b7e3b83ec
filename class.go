package fanfare

// Class says why an attempt came to nothing, in words that are the same for
// every driver. It decides on the schedule of the next attempt, and on what the
// answer means for the destination. The zero Class is an answer that no rule
// knows.
type Class string

// The classes. Who reads the answers, and by which rules, is in internal/mail/reply.
const (
	ClassThrottled  Class = "throttled"  // too many at a time: slow down (421 and 450 4.7.28, HTTP 429)
	ClassGreylisted Class = "greylisted" // a stranger is to come again in some minutes (450 4.7.1)
	ClassFull       Class = "full"       // the mailbox has no room (452 4.2.2)
	ClassBusy       Class = "busy"       // the receiver is not up to it now (451 4.3.x, 421 4.3.2, HTTP 503)
	ClassNetwork    Class = "network"    // the connection, a time-out, a name that was not found; HTTP 500, 502, 504, 408
	ClassBlocked    Class = "blocked"    // the sender is not trusted: reputation, a list, authentication (550 5.7.x)
	ClassInvalid    Class = "invalid"    // there is no such recipient (550 5.1.1, HTTP 404 and 410)
	ClassContent    Class = "content"    // this message is not taken: size, form, what it says (552 5.3.4, HTTP 413 and 422)
	ClassDenied     Class = "denied"     // the channel itself is not let in (530, 535, HTTP 401)
)

// Classes lists all classes but the zero one.
var Classes = [...]Class{
	ClassThrottled, ClassGreylisted, ClassFull, ClassBusy, ClassNetwork, ClassBlocked, ClassInvalid, ClassContent, ClassDenied,
}
