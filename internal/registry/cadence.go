package registry

import (
	"fmt"

	"fanfare.dev/fanfare/internal/inputerror"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/schedule/cadence"
)

// cadence reads one, and returns its spelling; "" of an immediate one.
func (n node) cadence() string {
	c, err := cadence.Parse(n.text())
	if err != nil {
		n.fail(err)
	}
	if c.Immediate() {
		return ""
	}
	return c.String()
}

// OfState reports whether its messages tell what is the case when they are due.
func (s *Subscription) OfState() bool {
	c, err := cadence.Parse(s.Cadence)
	return err == nil && c.OfState()
}

// mayWait refuses a cadence for which the topic does not have what it takes.
func (t *Topic) mayWait(c cadence.Cadence) error {
	switch {
	case c.Immediate():
		return nil
	case t.Digest.IsZero():
		return inputerror.Invalid("/cadence", "give the topic a digest: {template: NAME}, or leave the cadence away", "topic %s has no digest, so that nothing of it can wait for %s", inputerror.Quote(t.Name), c)
	case c.OfState() && t.Key == "" && t.Digest.Key != "":
		return inputerror.Invalid("/cadence", "give the topic itself the key: "+t.Digest.Key+", or leave of state away",
			"topic %s has a key in its digest alone, which picks the newest of the events that a message tells of: of state needs the key of the topic", inputerror.Quote(t.Name))
	case c.OfState() && t.Key == "":
		return inputerror.Invalid("/cadence", "give the topic a key, or leave of state away", "topic %s has no key, so that it has no state", inputerror.Quote(t.Name))
	}
	return nil
}

// checkCadence refuses a cadence that the topic's subscriptions cannot have.
func (pl *plan) checkCadence(at string, t *Topic) {
	if err := t.mayWait(t.Cadence); err != nil {
		pl.fail(at, err)
	}
}

// waitsFor refuses to take the digest away from a topic with n subscriptions that need it.
func (t *Topic) waitsFor(n int64) *fanfare.Error {
	return &fanfare.Error{Code: fanfare.Conflict, Pointer: inputerror.Pointer("topics", t.Name, "digest"), Message: fmt.Sprintf("%d subscriptions have a cadence, and need it", n),
		Hint: "leave the digest, or put them with the cadence immediate first"}
}
