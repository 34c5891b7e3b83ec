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

// listening checks the address of the API, and which program uses it.
func (o *Options) listening(ctx context.Context, r *Report, held bool) {
	at := o.Config.Listen
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", at)
	if err == nil {
		if err := l.Close(); err != nil {
			r.warn("listen", "", "%v", err)
			return
		}
		if held {
			r.warn("listen", "to check that server, set --listen to its address or --config to its configuration file", "a server uses %s but does not listen on %s", o.Config.DataDir, at)
			return
		}
		r.ok("listen", "%s is free; no server is running", at)
		return
	}
	if !errors.Is(err, syscall.EADDRINUSE) {
		mend := "set listen to an address of this machine"
		if errors.Is(err, syscall.EACCES) {
			mend = "use a port above 1023, or allow it (setcap cap_net_bind_service=+ep)"
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
	if told, ok := errors.AsType[*fanfare.Error](err); ok && held && told.Code == fanfare.Unauthenticated {
		r.warn("server", told.Hint, "a server runs at %s, but its state could not be checked: %s", at, told.Message)
		return
	}
	if err != nil {
		r.wrong("listen", "stop the other program, or set another port in listen; if it is Fanfare, set FANFARE_KEY to its key", "%s is in use by a program that does not respond like Fanfare: %v", at, err)
		return
	}
	if !held {
		r.warn("listen", "to run both, set another data_dir and port for one of them", "a server runs at %s, but it uses a data directory other than %s", at, o.Config.DataDir)
	} else {
		r.ok("listen", "a server runs at %s", at)
	}
	o.answered = server
	o.running(r, server)
}

func (o *Options) running(r *Report, s *Server) {
	if s.Version != o.Version {
		r.warn("version", "restart the server if it was updated; otherwise use the program with the same version as the server", "the server has version %s, but this program has version %s", s.Version, o.Version)
	} else {
		r.ok("version", "the server and this program have version %s", o.Version)
	}
	switch {
	case !s.Ready:
		r.warn("server", "fix the database problems above, or wait until the server has started or stopped", "it is not ready: %s", s.Reason)
	case s.Parked > 0:
		r.warn("server", "list the work with fanfare parked list, then retry or drop it", "%d work items failed too often and are parked", s.Parked)
	default:
		r.ok("server", "it accepts work, and no work is parked")
	}
	s.matching(r)
	o.copies(r, s.Bus)
	for _, p := range s.Problems {
		if p.Waits {
			r.warn(p.Check, p.Hint, "%s", p.Error)
		} else {
			r.wrong(p.Check, p.Hint, "%s", p.Error)
		}
	}
	for _, text := range s.TemplatesFailing {
		r.wrong("templates", "correct and apply the template; the broadcasts that it paused then resume", "%s", text)
	}
	for _, text := range s.TemplatesLacking {
		r.warn("templates", "correct the name, or add it to the schema of the topic", "%s", text)
	}
	for _, t := range s.Troubled {
		r.warn("channel "+t.Channel, "see the findings about its relay below", "the server cannot send: %s", t.Error)
	}
}

// matching reports conditions for which the index returned a wrong result.
func (s *Server) matching(r *Report) {
	const report = "this is a bug in Fanfare; report each condition with the schema of its topic and the event that fanfare status shows"
	if n := len(s.Quarantined); n > 0 {
		r.wrong("matching", report, "the index returned wrong results for %s, which are now evaluated without it: %s", conditions(n), strings.Join(s.Quarantined[:min(n, 3)], "; "))
	} else if s.Contradictions > 0 {
		r.wrong("matching", report, "since the server started, the index returned wrong results for %s, which have changed since then", conditions(int(s.Contradictions)))
	}
}

func conditions(n int) string {
	if n == 1 {
		return "1 condition"
	}
	return fmt.Sprintf("%d conditions", n)
}

// soon is the time before expiry from which a certificate is reported.
const soon = 14 * 24 * time.Hour

func (o *Options) certificate(r *Report) {
	if o.Config.TLSCert == "" {
		return
	}
	pair, err := tls.LoadX509KeyPair(o.Config.TLSCert, o.Config.TLSKey)
	if err != nil {
		r.wrong("certificate", "set tls_cert to the certificate chain and tls_key to its key", "%v", err)
		return
	}
	leaf := pair.Leaf
	now := o.Now()
	switch {
	case now.Before(leaf.NotBefore):
		r.wrong("certificate", "check the clock, or get another certificate", "it is valid only from %s", leaf.NotBefore.Format(time.DateOnly))
		return
	case now.After(leaf.NotAfter):
		r.wrong("certificate", "renew the certificate, and restart the server", "it expired on %s", leaf.NotAfter.Format(time.DateOnly))
		return
	}
	if host := hostOf(o.Config.PublicURL); host != "" {
		if err := leaf.VerifyHostname(host); err != nil {
			r.warn("certificate", "get a certificate for "+host+", unless the server is behind a proxy", "%v", err)
			return
		}
	}
	if leaf.NotAfter.Sub(now) < soon {
		r.warn("certificate", "renew the certificate, and restart the server", "it expires on %s", leaf.NotAfter.Format(time.DateOnly))
		return
	}
	r.ok("certificate", "it is valid for %s until %s", strings.Join(leaf.DNSNames, ", "), leaf.NotAfter.Format(time.DateOnly))
}

func hostOf(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return ""
	}
	return u.Hostname()
}

// names checks the public name of the server.
func (o *Options) names(ctx context.Context, r *Report) {
	address := o.Config.PublicURL
	switch {
	case address == "":
		r.warn("public_url", "set public_url to the URL at which recipients can reach this server", "it is not set: messages have no unsubscribe link, which large mailbox providers require")
		return
	case !strings.HasPrefix(address, "https://"):
		r.warn("public_url", "use https, either with tls_cert or behind a proxy", "%s is not https: one-click unsubscription (RFC 8058) requires it", address)
	}
	host := hostOf(address)
	if found, err := o.lookUp(ctx, host); err != nil {
		r.warn("public_url", "add the host name to the DNS, or check /etc/resolv.conf", "%v", err)
	} else if strings.HasPrefix(address, "https://") {
		r.ok("public_url", "%s is %s", host, found)
	}
}

// lookUp looks up a name. It returns an IP address unchanged.
func (o *Options) lookUp(ctx context.Context, host string) (string, error) {
	if !isName(host) {
		return host, nil
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	found, err := o.LookupHost(ctx, host)
	if err != nil {
		return "", fmt.Errorf("cannot resolve %s: %w", host, err)
	}
	return strings.Join(found, ", "), nil
}
