package doctor

import (
	"context"
	"slices"
	"time"

	"fanfare.dev/fanfare/internal/dkim"
	"fanfare.dev/fanfare/internal/registry"
)

// signatures looks at whether receivers find the keys of a channel (DKIM, RFC 6376):
// those that sign, and those that will. Keys that sign no more are not looked at.
func (o *Options) signatures(ctx context.Context, r *Report, z *zone, c *registry.Channel) {
	var keys []*dkim.Key
	for i := range c.DKIM {
		named := &c.DKIM[i]
		key := &dkim.Key{Domain: named.Domain, Selector: named.Selector, From: named.From}
		text, err := c.KeyText(named)
		if err != nil {
			r.warn("DKIM "+key.Name(), "run this as the user that runs the server, with its environment", "the private key cannot be read here: %v", err)
			continue
		}
		if key.Private, err = dkim.ParsePrivate([]byte(text)); err != nil {
			r.wrong("DKIM "+key.Name(), "fanfare dkim new "+key.Domain+" makes one", "the private key cannot be used: %v", err)
			continue
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
