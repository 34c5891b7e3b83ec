package doctor

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strings"
	"syscall"
	"time"

	"fanfare.dev/fanfare"
)

// listening looks at the address of the API, and at who holds it.
func (o *Options) listening(ctx context.Context, r *Report, held bool) {
	at := o.Config.Listen
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", at)
	if err == nil {
		if err := l.Close(); err != nil {
			r.warn("listen", "", "%v", err)
			return
		}
		if held {
			r.warn("listen", "name its address with --listen, or its configuration with --config, to have it looked at", "a server works in %s, and not at %s", o.Config.DataDir, at)
			return
		}
		r.ok("listen", "%s is free, no server runs", at)
		return
	}
	if !errors.Is(err, syscall.EADDRINUSE) {
		mend := "name an address of this machine in listen"
		if errors.Is(err, syscall.EACCES) {
			mend = "take a port above 1023, or allow it (setcap cap_net_bind_service=+ep)"
		}
		r.wrong("listen", mend, "%v", err)
		return
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	server, err := o.Server(ctx)
	if told, ok := errors.AsType[*fanfare.Error](err); ok && held && told.Code == fanfare.Unavailable {
		r.warn("server", told.Hint, "it is not ready: %s", told.Message)
		return
	}
	if err != nil {
		r.wrong("listen", "end the other program, or name another port in listen; if it is Fanfare, give its key in FANFARE_KEY", "%s is in use, and what is there does not answer as Fanfare does: %v", at, err)
		return
	}
	if !held {
		r.warn("listen", "one of them needs another data_dir and port, if both are to run", "a server runs at %s, and in another data directory than %s", at, o.Config.DataDir)
	} else {
		r.ok("listen", "a server runs at %s", at)
	}
	o.answered = server
	o.running(r, server)
}

func (o *Options) running(r *Report, s *Server) {
	if s.Version != o.Version {
		r.warn("version", "restart the server where it was updated; else use the program that belongs to it", "the server is of version %s, this program of %s", s.Version, o.Version)
	} else {
		r.ok("version", "the server and this program are of version %s", o.Version)
	}
	switch {
	case !s.Ready:
		r.warn("server", "mend what is said of the database above, or wait until the server has started or stopped", "it is not ready: %s", s.Reason)
	case s.Parked > 0:
		r.warn("server", "see fanfare parked list; retry or drop it", "%d pieces of work failed too often and wait for somebody", s.Parked)
	default:
		r.ok("server", "it takes work, and nothing is parked")
	}
	s.matching(r)
	for _, p := range s.Problems {
		if p.Waits {
			r.warn(p.Check, p.Hint, "%s", p.Error)
		} else {
			r.wrong(p.Check, p.Hint, "%s", p.Error)
		}
	}
	for _, text := range s.TemplatesFailing {
		r.wrong("templates", "correct the template and apply it: a broadcast that it paused resumes then", "%s", text)
	}
	for _, text := range s.TemplatesLacking {
		r.warn("templates", "correct the name, or give the topic a schema that has it", "%s", text)
	}
	for _, t := range s.Troubled {
		r.warn("channel "+t.Channel, "see what is said of its relay below", "the server cannot send: %s", t.Error)
	}
}

// matching tells of conditions about which the matching index was wrong.
func (s *Server) matching(r *Report) {
	const report = "this is a defect of Fanfare: report each condition, its topic's schema and the event that fanfare status names"
	if n := len(s.Quarantined); n > 0 {
		r.wrong("matching", report, "the matching index was wrong about %s, now evaluated without it: %s", conditions(n), strings.Join(s.Quarantined[:min(n, 3)], "; "))
	} else if s.Contradictions > 0 {
		r.wrong("matching", report, "the matching index was wrong about %s since the start of the server, which have changed since", conditions(int(s.Contradictions)))
	}
}

func conditions(n int) string {
	if n == 1 {
		return "1 condition"
	}
	return fmt.Sprintf("%d conditions", n)
}

// soon is how long before its end a certificate is worth a word.
const soon = 14 * 24 * time.Hour

func (o *Options) certificate(r *Report) {
	if o.Config.TLSCert == "" {
		return
	}
	pair, err := tls.LoadX509KeyPair(o.Config.TLSCert, o.Config.TLSKey)
	if err != nil {
		r.wrong("certificate", "name the chain in tls_cert and the key that belongs to it in tls_key", "%v", err)
		return
	}
	leaf := pair.Leaf
	now := o.Now()
	switch {
	case now.Before(leaf.NotBefore):
		r.wrong("certificate", "look at the clock, or get another one", "it is valid only from %s", leaf.NotBefore.Format(time.DateOnly))
		return
	case now.After(leaf.NotAfter):
		r.wrong("certificate", "renew it, and restart the server", "it ended on %s", leaf.NotAfter.Format(time.DateOnly))
		return
	}
	if host := hostOf(o.Config.PublicURL); host != "" {
		if err := leaf.VerifyHostname(host); err != nil {
			r.warn("certificate", "get one for "+host+", unless a proxy stands in front of the server", "%v", err)
			return
		}
	}
	if leaf.NotAfter.Sub(now) < soon {
		r.warn("certificate", "renew it, and restart the server", "it ends on %s", leaf.NotAfter.Format(time.DateOnly))
		return
	}
	r.ok("certificate", "it is for %s, until %s", strings.Join(leaf.DNSNames, ", "), leaf.NotAfter.Format(time.DateOnly))
}

func hostOf(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return ""
	}
	return u.Hostname()
}

// names looks up the name under which recipients reach the server.
func (o *Options) names(ctx context.Context, r *Report) {
	address := o.Config.PublicURL
	switch {
	case address == "":
		r.warn("public_url", "set public_url to the URL under which people reach this server", "it is not set: mails carry no link to unsubscribe, and large mailbox providers ask for one")
		return
	case !strings.HasPrefix(address, "https://"):
		r.warn("public_url", "use https, with tls_cert or behind a proxy", "%s is not https: one-click unsubscription (RFC 8058) needs it", address)
	}
	host := hostOf(address)
	if found, err := o.lookUp(ctx, host); err != nil {
		r.warn("public_url", "add the name to the DNS, or look at /etc/resolv.conf", "%v", err)
	} else if strings.HasPrefix(address, "https://") {
		r.ok("public_url", "%s is %s", host, found)
	}
}

// lookUp asks the resolver for a name; an address is what it is.
func (o *Options) lookUp(ctx context.Context, host string) (string, error) {
	if !isName(host) {
		return host, nil
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	found, err := o.LookupHost(ctx, host)
	if err != nil {
		return "", fmt.Errorf("the resolver does not know %s: %w", host, err)
	}
	return strings.Join(found, ", "), nil
}
