package fanfare

// Class says why an attempt failed. All drivers use the same classes. The class selects the
// retry schedule and decides how the answer affects the destination. The zero Class is an
// answer that no rule recognizes.
type Class string

// The classes. Package internal/mail/reply has the rules that map answers to them.
const (
	ClassThrottled  Class = "throttled"  // too many at a time: slow down (421 and 450 4.7.28, HTTP 429)
	ClassGreylisted Class = "greylisted" // the receiver asks an unknown sender to try again in some minutes (450 4.7.1)
	ClassFull       Class = "full"       // the mailbox is full (452 4.2.2)
	ClassBusy       Class = "busy"       // the receiver is overloaded or unavailable for now (451 4.3.x, 421 4.3.2, HTTP 503)
	ClassNetwork    Class = "network"    // a connection error, a timeout, an unresolved name; HTTP 500, 502, 504, 408
	ClassBlocked    Class = "blocked"    // the sender is not trusted: reputation, a list, authentication (550 5.7.x)
	ClassInvalid    Class = "invalid"    // there is no such recipient (550 5.1.1, HTTP 404 and 410)
	ClassContent    Class = "content"    // the receiver refuses this message: its size, form or content (552 5.3.4, HTTP 413 and 422)
	ClassDenied     Class = "denied"     // the receiver does not accept the credentials of the channel (530, 535, HTTP 401)
)

// Classes lists all classes except the zero Class.
var Classes = [...]Class{
	ClassThrottled, ClassGreylisted, ClassFull, ClassBusy, ClassNetwork, ClassBlocked, ClassInvalid, ClassContent, ClassDenied,
}
