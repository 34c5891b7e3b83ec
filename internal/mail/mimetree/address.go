package mimetree

// The texts that replace missing and broken parts of an address.
const (
	missingMailbox = "MISSING_MAILBOX"
	missingDomain  = "MISSING_DOMAIN"
	invalidRoute   = "INVALID_ROUTE"
	syntaxError    = "SYNTAX_ERROR"
)

// parseAddresses parses a list of addresses (RFC 5322, section 3.4). It returns something for each address, a broken one too.
func parseAddresses(value []byte) []Address {
	l := structured(value)
	l.comments = true
	p := addressParser{lexer: l}
	if l.space() != more {
		return nil
	}
	for len(p.all) < maxAddresses {
		if p.address() == atEnd || !l.is(',') {
			break
		}
		l.at++
		if space := l.space(); space != more {
			if space == failed {
				p.add(draftAddress{})
			}
			break
		}
	}
	return p.all
}

type addressParser struct {
	*lexer
	all  []Address
	text []byte
}

// draftAddress is an address whose parts can be missing.
type draftAddress struct {
	name, route, mailbox, host string
	hasName, hasMailbox        bool
	hasHost                    bool
	invalid                    bool
}

func (p *addressParser) add(d draftAddress) {
	if !d.hasMailbox {
		d.mailbox = missingMailbox
	}
	if d.host == "" {
		d.host = missingDomain
	}
	p.all = append(p.all, Address{Name: collapsed([]byte(d.name)), Route: d.route, Mailbox: d.mailbox, Host: d.host})
}

// address reads a group or a mailbox.
func (p *addressParser) address() progress {
	start := p.at
	if result := p.group(); result != failed {
		return result
	}
	p.at = start
	return p.mailbox()
}

// group reads a name, a colon, mailboxes and a semicolon. It fails only if there is no colon.
func (p *addressParser) group() progress {
	p.text = p.text[:0]
	if p.phrase(&p.text) != more || !p.is(':') {
		return failed
	}
	p.at++
	result := p.space()
	p.all = append(p.all, Address{Mailbox: string(p.text), Group: GroupBegin})
	if result == more && !p.is(';') {
		for len(p.all) < maxAddresses {
			p.mailbox() // a broken one does not end the group
			if !p.is(',') {
				break
			}
			p.at++
			if p.space() != more {
				result = failed
				break
			}
		}
	}
	if result != failed {
		if p.is(';') {
			p.at++
			result = p.space()
		} else {
			result = failed
		}
	}
	p.all = append(p.all, Address{Group: GroupEnd})
	if result == atEnd {
		return atEnd
	}
	return more
}

// mailbox reads a name with an address in angle brackets, or an address.
func (p *addressParser) mailbox() progress {
	var d draftAddress
	start := p.at
	result := p.named(&d)
	if result == failed {
		p.at = start
		result = p.bare(&d)
		if d.invalid && !d.hasName && d.hasMailbox && !d.hasHost {
			d.name, d.mailbox, d.hasMailbox = d.mailbox, "", false
		}
	}
	p.add(d)
	return result
}

// named reads an optional name and an address in angle brackets. It fails if there is no bracket.
func (p *addressParser) named(d *draftAddress) progress {
	p.text = p.text[:0]
	if p.phrase(&p.text) != more || !p.is('<') {
		return failed
	}
	d.name, d.hasName = string(p.text), len(p.text) > 0
	if p.bracketed(d) == failed {
		d.host, d.hasHost, d.invalid = syntaxError, true, true
	}
	return p.rest()
}

func (p *addressParser) bracketed(d *draftAddress) progress {
	p.at++
	if p.space() != more {
		return failed
	}
	if p.is('@') {
		if p.routes(d) == more && p.is(':') {
			p.at++
		} else {
			d.route = invalidRoute
			if p.at == len(p.lexer.text) {
				return failed
			}
		}
		if p.space() != more {
			return failed
		}
	}
	if !p.is('>') {
		if p.local(d) != more || p.is('@') && p.host(d) != more {
			return failed
		}
	}
	if !p.is('>') {
		return failed
	}
	p.at++
	return p.space()
}

// routes reads an obsolete source route: @a,@b.
func (p *addressParser) routes(d *draftAddress) progress {
	p.text = p.text[:0]
	for p.is('@') {
		if len(p.text) > 0 {
			p.text = append(p.text, ',')
		}
		p.text = append(p.text, '@')
		if result := p.domain(&p.text); result != more {
			return result
		}
		for p.space() == more && p.is(',') {
			p.at++
		}
	}
	if p.at == len(p.lexer.text) {
		return atEnd
	}
	d.route = string(p.text)
	return more
}

func (p *addressParser) local(d *draftAddress) progress {
	p.text = p.text[:0]
	var result progress
	if p.is('"') {
		result = p.quoted(&p.text)
	} else {
		result = p.dottedAtoms()
	}
	if result != failed {
		d.mailbox, d.hasMailbox = string(p.text), true
	}
	return result
}

// dottedAtoms reads atoms and dots, also several dots, and dots at the begin and the end.
func (p *addressParser) dottedAtoms() progress {
	result := failed
	for {
		for p.is('.') {
			p.text = append(p.text, '.')
			if p.at++; p.at == len(p.lexer.text) {
				return atEnd
			}
			result = more
		}
		if p.is('@') {
			return result
		}
		if result = p.atom(&p.text); result != more || !p.is('.') {
			return result
		}
	}
}

func (p *addressParser) host(d *draftAddress) progress {
	p.text = p.text[:0]
	result := p.domain(&p.text)
	if result != failed {
		d.host, d.hasHost = string(p.text), true
	}
	return result
}

// bare reads an address without brackets; its name is the last comment. Words without an @ are a name, and a single word is a mailbox.
func (p *addressParser) bare(d *draftAddress) progress {
	p.comment = p.comment[:0]
	isQuoted := p.is('"')
	result := p.local(d)
	if result != more {
		d.invalid = true
	}
	withHost := false
	if result != atEnd && p.is('@') {
		withHost = true
		if hosted := p.host(d); hosted != more {
			result = hosted
		}
	}
	if len(p.comment) > 0 {
		d.name, d.hasName = string(p.comment), true
		return result
	}
	if withHost {
		return result
	}
	p.text = append(p.text, ' ')
	before := len(p.text)
	p.phrase(&p.text)
	if len(p.text) != before {
		d.mailbox, d.hasMailbox = "", false
		d.name, d.hasName = string(p.text), true
	} else if !isQuoted {
		d.hasHost = true // no host, but a mailbox
	}
	d.invalid = true
	return failed
}
