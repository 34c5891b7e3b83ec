package smtp

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"time"

	fanfare "fanfare.dev/fanfare"
)

// A parcel is what one transaction is about: a letter, or several that are one
// message, of which the body is written once. The first stands for all of them but
// for who gets it.
type parcel struct {
	letters []*fanfare.Letter // that the body is for
	alone   fanfare.Letter    // the message to the only recipient; without To: letters have it

	// What the answers to the envelope say so far.
	answers int               // to RCPT
	taken   []*fanfare.Letter // recipients that are good
	later   []*fanfare.Letter // more than the peer takes in a transaction
	limit   int               // of recipients, where the peer has one; 0: it has said nothing of it
	refused []refused
}

// refused is a letter whose recipient, or whose whole envelope, is refused.
type refused struct {
	letter *fanfare.Letter
	refusal
}

// message is what is sent.
func (p *parcel) message() *fanfare.Letter {
	if p.alone.To != "" {
		return &p.alone
	}
	return p.letters[0]
}

// settleAlone has the only recipient of a message which others could have got get his
// own. Where that cannot be made or be sent, he gets what the others would have got.
func (s *session) settleAlone(p *parcel) {
	if len(p.letters) != 1 || p.letters[0].Alone == nil || p.alone.To != "" {
		return
	}
	if alone, err := p.letters[0].Alone(); err == nil && s.conn.can.unsendable(&alone) == "" {
		p.alone = alone
	}
}

// pack makes a parcel of a letter and those that may go with it.
func (s *session) pack(l *fanfare.Letter) *parcel {
	p := s.gather(l)
	s.settleAlone(p)
	return p
}

func (s *session) gather(l *fanfare.Letter) *parcel {
	p := &s.parcels[s.turn]
	s.turn ^= 1
	p.letters, p.alone = append(p.letters[:0], l), fanfare.Letter{}
	p.begin()
	most := s.d.cfg.MaxRecipients
	if s.conn.most > 0 {
		most = min(most, s.conn.most)
	}
	if l.Share == 0 || s.companions == nil || most <= 1 {
		return p
	}
	for len(s.hand) > 0 && len(p.letters) < most && s.conn.goesWith(s.hand[0], l) {
		p.letters, s.hand = append(p.letters, s.hand[0]), s.hand[1:]
	}
	if len(p.letters) == most {
		return p
	}
	known := len(p.letters)
	p.letters = s.companions.Companions(p.letters, l, most-known)
	fit := known
	for _, other := range p.letters[known:] {
		if s.conn.goesWith(other, l) {
			p.letters[fit] = other
			fit++
		} else {
			s.hand = append(s.hand, other)
		}
	}
	p.letters = p.letters[:fit]
	return p
}

// goesWith reports whether l is the same message as another that is sent: that its
// bytes are the same is not taken on trust.
func (c *conn) goesWith(l, with *fanfare.Letter) bool {
	return l.Share == with.Share && l.From == with.From && l.EightBit == with.EightBit && needsUTF8(l) == needsUTF8(with) &&
		bytes.Equal(l.Body, with.Body) && bytes.Equal(l.Enclosed, with.Enclosed) && c.can.unsendable(l) == ""
}

// begin forgets the answers to an envelope.
func (p *parcel) begin() {
	p.answers, p.limit, p.taken, p.later, p.refused = 0, 0, p.taken[:0], p.later[:0], p.refused[:0]
}

// answered notes the answer to the RCPT of a letter. Behind one that is good, a
// refusal may say that there are too many recipients: that is no judgement on this
// one, which comes with the next transaction.
func (p *parcel) answered(l *fanfare.Letter, r refusal, good bool) {
	p.answers++
	switch {
	case good:
		p.taken = append(p.taken, l)
	case len(p.taken) > 0 && (r.code == 452 || r.tooMany()):
		p.later = append(p.later, l)
		if r.tooMany() || len(p.later) > 1 {
			p.limit = len(p.taken)
		}
	default:
		p.refused = append(p.refused, refused{l, r})
	}
}

// tooMany reports whether a refusal speaks of the number of recipients, for which
// 452 is meant (RFC 5321, section 4.5.3.1.10) and X.5.3 (RFC 3463, section 3.6).
func (r refusal) tooMany() bool {
	return r.code != 421 && (strings.HasPrefix(r.text, "4.5.3 ") || strings.HasPrefix(r.text, "5.5.3 ") ||
		strings.Contains(strings.ToLower(r.text), "too many recipients"))
}

// aboutGrouping finds what a peer says of commands that came too early.
func (p *parcel) aboutGrouping(all refusal) (text string, about bool) {
	if all.code != 0 && aboutGrouping(all.text) {
		return fmt.Sprintf("%d %s", all.code, all.text), true
	}
	for _, r := range p.refused {
		if aboutGrouping(r.text) {
			return fmt.Sprintf("%d %s", r.code, r.text), true
		}
	}
	return "", false
}

// conclude leaves the body to those whose recipients are good.
func (p *parcel) conclude() { p.letters = append(p.letters[:0], p.taken...) }

// passOn takes out what another relay gets.
func (s *session) passOn(p *parcel) {
	if len(p.refused) > 0 {
		p.refused = slices.DeleteFunc(p.refused, s.elsewhere)
	}
}

// refuse ends a parcel of which no body follows: by a refusal of the whole those that
// were not refused by themselves are, without one they are what is left of it. It
// returns the refusal that ends the connection, where one did.
func (p *parcel) refuse(all refusal) (end refusal) {
	left := slices.Concat(p.taken, p.later, p.letters[p.answers:])
	if all.code != 0 {
		end = all
		gone := p.taken
		left = p.later
		if all.command == mail {
			gone, left = p.letters, nil
		}
		for _, l := range gone {
			p.refused = append(p.refused, refused{l, all})
		}
	}
	for _, r := range p.refused {
		if r.code == 421 {
			end = r.refusal
		}
	}
	p.letters = append(p.letters[:0], left...)
	return end
}

// keep has letters go with what comes next, in front of what is in hand.
func (s *session) keep(letters []*fanfare.Letter) { s.hand = slices.Insert(s.hand, 0, letters...) }

// release asks for the body of p. Where it may not leave, what is left of p comes
// again.
func (s *session) release(p *parcel) bool {
	var left []*fanfare.Letter
	released := false
	if len(p.letters) == 1 {
		released = s.desk.Release(p.letters[0])
	} else {
		left, released = s.companions.ReleaseAll(p.letters)
	}
	if !released {
		for _, r := range p.refused {
			left = append(left, r.letter)
		}
		s.keep(left)
	}
	return released
}

// report gives the outcome of the body of p, and with it those of the recipients
// that were refused.
func (s *session) report(p *parcel, outcome fanfare.Outcome) error {
	if len(p.letters) == 1 && len(p.refused) == 0 {
		return s.desk.Report(p.letters[0], outcome)
	}
	outcomes := slices.Repeat([]fanfare.Outcome{outcome}, len(p.letters))
	return s.reportAll(p.letters, outcomes, p.refused)
}

// reportAll reports released letters, and with them what was refused.
func (s *session) reportAll(letters []*fanfare.Letter, outcomes []fanfare.Outcome, also []refused) error {
	now := time.Now()
	for _, r := range also {
		if s.desk.Release(r.letter) {
			letters, outcomes = append(letters, r.letter), append(outcomes, s.outcomeOf(r.refusal, now))
		}
	}
	if len(letters) == 0 {
		return nil
	}
	return s.companions.ReportAll(letters, outcomes)
}

// settleRefused reports letters of which nothing was written but their envelope.
func (s *session) settleRefused(all []refused) step {
	switch len(all) {
	case 0:
		return goOn
	case 1:
		return s.settle(all[0].letter, verdictOf(all[0].code), all[0].code, all[0].text)
	}
	if err := s.reportAll(nil, nil, all); err != nil {
		s.err = fmt.Errorf("the outcome could not be kept: %w", err)
		return failed
	}
	return goOn
}

// giveBack returns what is left of a parcel, if there is one, to the front of the
// desk.
func (s *session) giveBack(p *parcel) {
	if p == nil {
		return
	}
	for _, r := range slices.Backward(p.refused) {
		if !slices.Contains(p.letters, r.letter) {
			s.desk.Return(r.letter)
		}
	}
	s.giveBackAll(p.letters)
}

// giveBackHand returns what is in hand.
func (s *session) giveBackHand() {
	s.giveBackAll(s.hand)
	s.hand = nil
}

func (s *session) giveBackAll(letters []*fanfare.Letter) {
	for _, l := range slices.Backward(letters) {
		s.desk.Return(l)
	}
}
