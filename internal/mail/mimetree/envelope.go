package mimetree

// add adds a field of the header. Of a field that occurs several times, the last one counts, but addresses are
// those of all.
func (e *Envelope) add(f field) {
	addresses := func(to *[]Address) {
		*to = append(*to, parseAddresses(f.value)...)
		*to = (*to)[:min(len(*to), maxAddresses)]
	}
	text := func(has Presence, to *string) {
		*to = unfolded(f.value)
		e.Present |= has
	}
	var lower [12]byte
	switch string(lowered(f.name, lower[:])) {
	case "date":
		text(HasDate, &e.Date)
	case "subject":
		e.Subject = collapsed(f.value)
		e.Present |= HasSubject
	case "in-reply-to":
		text(HasInReplyTo, &e.InReplyTo)
	case "message-id":
		text(HasMessageID, &e.MessageID)
	case "from":
		addresses(&e.From)
	case "sender":
		addresses(&e.Sender)
	case "reply-to":
		addresses(&e.ReplyTo)
	case "to":
		addresses(&e.To)
	case "cc":
		addresses(&e.Cc)
	case "bcc":
		addresses(&e.Bcc)
	}
}

// finish sets the addresses that are From if they are missing.
func (e *Envelope) finish() {
	if len(e.Sender) == 0 {
		e.Sender = e.From
	}
	if len(e.ReplyTo) == 0 {
		e.ReplyTo = e.From
	}
}
