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

// signatures checks whether receivers find the DKIM keys of a channel (RFC 6376) that sign now or later. It does not check
// retired keys.
func (o *Options) signatures(ctx context.Context, r *Report, z *zone, c *catalog.Channel) {
	var keys []*dkim.Key
	for i := range c.DKIM {
		named := &c.DKIM[i]
		key := &dkim.Key{Domain: named.Domain, Selector: named.Selector, From: named.From}
		text, err := c.KeyText(named)
		if err != nil {
			continue // already reported
		}
		if key.Private, err = dkim.ParsePrivate([]byte(text)); err != nil {
			continue
		}
		if key.Waits = named.WaitForDNS && o.waits(ctx, z, key); key.Waits && !key.From.After(o.Now()) && o.answered == nil { // otherwise the server reports it
			o.published(ctx, r, z, key, Warning, "it does not sign until its record is found")
		}
		keys = append(keys, key)
	}
	signers := dkim.At(keys, o.Now())
	for _, key := range keys {
		switch {
		case slices.Contains(signers, key):
			o.published(ctx, r, z, key, Wrong, "it signs")
		case key.From.After(o.Now()):
			o.published(ctx, r, z, key, Warning, "it starts to sign on "+key.From.Format(time.RFC3339))
		}
	}
	if slices.ContainsFunc(signers, func(k *dkim.Key) bool { return k.Algorithm() == dkim.RSA }) {
		return
	}
	for _, key := range signers {
		r.warn("DKIM "+key.Name(), "add a second key to the channel: fanfare dkim new "+key.Domain+" --type rsa", "channel %s/%s signs only with Ed25519, which not all receivers support (RFC 8463)", c.Service, c.Name)
	}
}

// waits reports whether a key does not sign yet because its record was not found. A running server knows the answer;
// without one, the record is looked up now.
func (o *Options) waits(ctx context.Context, z *zone, key *dkim.Key) bool {
	if o.answered != nil {
		return slices.ContainsFunc(o.answered.Problems, func(p Problem) bool { return p.Waits && p.Check == "DKIM "+key.Name() })
	}
	texts, err := z.texts(ctx, key.Name())
	return err != nil || key.Seen(texts) != nil
}

// keyFiles checks whether the private keys of a channel can be read. It reports a key that several channels use only once.
func (o *Options) keyFiles(r *Report, c *catalog.Channel) {
	of := &Report{}
	defer func() { r.merge(of) }()
	for i := range c.DKIM {
		named := &c.DKIM[i]
		at, mend := "DKIM "+named.Selector+"._domainkey."+named.Domain, "restore it, or create another with fanfare dkim new "+named.Domain+" and configure it in the channel"
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

// told reports whether the server has already reported the same problem.
func (o *Options) told(check string) bool {
	return o.answered != nil && slices.ContainsFunc(o.answered.Problems, func(p Problem) bool { return !p.Waits && p.Check == check })
}

// unreadable reports a secret that this user cannot read. If the file is missing, the server cannot read it either.
func unreadable(r *Report, check, mend, file, what string, err error) {
	if _, missing := os.Stat(file); file != "" && errors.Is(missing, fs.ErrNotExist) {
		r.wrong(check, mend, "the %s cannot be read: %v", what, err)
		return
	}
	r.warn(check, "run this command as the user that runs the server, with its environment", "the %s cannot be read here: %v", what, err)
}

// published checks the DNS record of a key. level is the severity of a missing or wrong record.
func (o *Options) published(ctx context.Context, r *Report, z *zone, key *dkim.Key, level Level, when string) {
	at := "DKIM " + key.Name()
	texts, err := z.texts(ctx, key.Name())
	switch {
	case err != nil:
		r.warn(at, mendDNS, "its record could not be looked up: %v", err)
		return
	case len(texts) == 0:
		r.add(at, level, "add to the DNS: "+key.ZoneLine(), "%s, but its record is not in the DNS", when)
		return
	case len(texts) > 1:
		r.add(at, level, "keep only this record in the DNS: "+key.ZoneLine(), "%s, but the DNS has %d records, so receivers may use any of them", when, len(texts))
		return
	}
	record, err := dkim.ParseRecord(texts[0])
	if err == nil {
		err = record.Of(key.Private)
	}
	switch {
	case err != nil:
		r.add(at, level, "replace it in the DNS with: "+key.ZoneLine(), "%s, but its record in the DNS does not match the key: %v", when, err)
	case record.Testing:
		r.warn(at, "replace it in the DNS with: "+key.ZoneLine(), "%s, but its record has the test flag (t=y): receivers treat its mail as unsigned", when)
	case key.Algorithm() == dkim.RSA && key.Bits() < dkim.NormalBits:
		r.warn(at, "create a 2048-bit key with fanfare dkim rotate", "%s, but it has only %d bits, which some receivers consider too short (RFC 8301)", when, key.Bits())
	default:
		r.ok(at, "%s, and its record is in the DNS", when)
	}
}
