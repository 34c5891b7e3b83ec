package doctor

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"slices"
	"time"

	"fanfare.dev/fanfare/internal/catalog"
	"fanfare.dev/fanfare/internal/mail/dkim"
)

// signatures looks at whether receivers find the keys of a channel (DKIM, RFC 6376):
// those that sign, and those that will. Keys that sign no more are not looked at.
func (o *Options) signatures(ctx context.Context, r *Report, z *zone, c *catalog.Channel) {
	var keys []*dkim.Key
	for i := range c.DKIM {
		named := &c.DKIM[i]
		key := &dkim.Key{Domain: named.Domain, Selector: named.Selector, From: named.From}
		text, err := c.KeyText(named)
		if err != nil {
			continue // it was told
		}
		if key.Private, err = dkim.ParsePrivate([]byte(text)); err != nil {
			continue
		}
		if key.Waits = named.WaitForDNS && o.waits(ctx, z, key); key.Waits && !key.From.After(o.Now()) && o.answered == nil { // else the server has told
			o.published(ctx, r, z, key, Warning, "it waits for its record before it signs")
		}
		keys = append(keys, key)
	}
	signers := dkim.At(keys, o.Now())
	for _, key := range keys {
		switch {
		case slices.Contains(signers, key):
			o.published(ctx, r, z, key, Wrong, "it signs")
		case key.From.After(o.Now()):
			o.published(ctx, r, z, key, Warning, "it signs from "+key.From.Format(time.RFC3339)+" on")
		}
	}
	if slices.ContainsFunc(signers, func(k *dkim.Key) bool { return k.Algorithm() == dkim.RSA }) {
		return
	}
	for _, key := range signers {
		r.warn("DKIM "+key.Name(), "give the channel a second key: fanfare dkim new "+key.Domain+" --type rsa", "channel %s/%s signs with Ed25519 alone, which not all receivers know (RFC 8463)", c.Service, c.Name)
	}
}

// waits reports whether a key does not sign yet because its record was not seen: a server
// knows what it has seen, and one that starts looks now.
func (o *Options) waits(ctx context.Context, z *zone, key *dkim.Key) bool {
	if o.answered != nil {
		return slices.ContainsFunc(o.answered.Problems, func(p Problem) bool { return p.Waits && p.Check == "DKIM "+key.Name() })
	}
	texts, err := z.texts(ctx, key.Name())
	return err != nil || key.Seen(texts) != nil
}

// keyFiles looks at whether the keys of a channel can be read, whatever the DNS says of
// them. Of several channels with the same key it tells once.
func (o *Options) keyFiles(r *Report, c *catalog.Channel) {
	of := &Report{}
	defer func() { r.merge(of) }()
	for i := range c.DKIM {
		named := &c.DKIM[i]
		at, mend := "DKIM "+named.Selector+"._domainkey."+named.Domain, "put it back; or make another with fanfare dkim new "+named.Domain+" and name it in the channel"
		if o.told(at) {
			continue
		}
		text, err := c.KeyText(named)
		if err == nil {
			if _, err = dkim.ParsePrivate([]byte(text)); err != nil {
				of.wrong(at, mend, "the private key %s cannot be used: %v", named.KeyFile+named.KeyEnv, err)
			}
			continue
		}
		unreadable(of, at, mend, named.KeyFile, "private key", err)
	}
}

// told reports whether the server has told of the same.
func (o *Options) told(check string) bool {
	return o.answered != nil && slices.ContainsFunc(o.answered.Problems, func(p Problem) bool { return !p.Waits && p.Check == check })
}

// unreadable tells of a secret that this user cannot read. A file that is not there is
// not there for the server either.
func unreadable(r *Report, check, mend, file, what string, err error) {
	if _, missing := os.Stat(file); file != "" && errors.Is(missing, fs.ErrNotExist) {
		r.wrong(check, mend, "the %s cannot be read: %v", what, err)
		return
	}
	r.warn(check, "run this as the user that runs the server, with its environment", "the %s cannot be read here: %v", what, err)
}

// published looks at the record of a key. level is how bad it is if it is not that.
func (o *Options) published(ctx context.Context, r *Report, z *zone, key *dkim.Key, level Level, when string) {
	at := "DKIM " + key.Name()
	texts, err := z.texts(ctx, key.Name())
	switch {
	case err != nil:
		r.warn(at, mendDNS, "its record was not found out: %v", err)
		return
	case len(texts) == 0:
		r.add(at, level, "add to the DNS: "+key.ZoneLine(), "%s, and its record is not in the DNS", when)
		return
	case len(texts) > 1:
		r.add(at, level, "leave this one alone in the DNS: "+key.ZoneLine(), "%s, and there are %d records, of which receivers may take any", when, len(texts))
		return
	}
	record, err := dkim.ParseRecord(texts[0])
	if err == nil {
		err = record.Of(key.Private)
	}
	switch {
	case err != nil:
		r.add(at, level, "put in its place in the DNS: "+key.ZoneLine(), "%s, and its record in the DNS does not go with it: %v", when, err)
	case record.Testing:
		r.warn(at, "put in its place in the DNS: "+key.ZoneLine(), "%s, and its record says that this is a test (t=y): receivers treat its mail as if it was not signed", when)
	case key.Algorithm() == dkim.RSA && key.Bits() < dkim.NormalBits:
		r.warn(at, "fanfare dkim rotate makes one of 2048 bits", "%s, and has %d bits, which some receivers take for too few (RFC 8301)", when, key.Bits())
	default:
		r.ok(at, "%s, and its record is in the DNS", when)
	}
}
