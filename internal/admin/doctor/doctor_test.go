package doctor

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/catalog"
	"fanfare.dev/fanfare/internal/config"
)

// healthy is a machine on which all is well.
func healthy(t *testing.T) Options {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "data")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	return Options{
		Config:  config.Config{DataDir: dir, Durability: "relaxed", Listen: "127.0.0.1:0", PublicURL: "https://news.example.org", MaxRequests: 10},
		Version: "1.0",
		Server:  func(context.Context) (*Server, error) { return nil, errors.New("nobody is there") },
		Files:   func(context.Context) ([]File, error) { return nil, nil },
		Charge:  func(context.Context) error { return nil },
		Channels: func(context.Context) ([]*catalog.Channel, error) {
			return []*catalog.Channel{{Service: "news", Name: "mail", ChannelSettings: catalog.ChannelSettings{Driver: "smtp", Relay: "mx.example.org:25", Connections: 5}}}, nil
		},
		Probe: func(context.Context, *catalog.Channel, string) (Session, error) {
			return Session{Banner: "mx ESMTP", Extensions: []string{"PIPELINING"}, TLS: "TLS 1.3"}, nil
		},
		LookupHost: func(_ context.Context, host string) ([]string, error) { return []string{"192.0.2.1"}, nil },
		Now:        time.Now,
	}
}

// of returns the findings of a check.
func (r *Report) of(check string) (list []Finding) {
	for _, f := range r.Findings {
		if f.Check == check {
			list = append(list, f)
		}
	}
	return list
}

func TestHealthyServerHasNoProblems(t *testing.T) {
	o := healthy(t)
	r := Look(t.Context(), o)
	if r.Wrong != 0 {
		t.Errorf("%+v", r.Findings)
	}
	for _, check := range []string{"configuration", "time zones", "data", "keys", "sync", "listen", "public_url", "channel news/mail", "open files"} {
		list := r.of(check)
		if len(list) != 1 || list[0].Level != OK || list[0].What == "" || list[0].Mend != "" {
			t.Errorf("%s: %+v", check, list)
		}
	}
	left, err := os.ReadDir(o.Config.DataDir)
	if err != nil || len(left) != 0 {
		t.Errorf("it left %v behind, %v", left, err)
	}
}

// certificate writes a pair for a host, and puts it into the configuration.
func certificate(t *testing.T, o *Options, host string, from, to time.Time) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: host}, DNSNames: []string{host}, NotBefore: from, NotAfter: to}
	cert, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	o.Config.TLSCert, o.Config.TLSKey = filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	for path, block := range map[string]*pem.Block{o.Config.TLSCert: {Type: "CERTIFICATE", Bytes: cert}, o.Config.TLSKey: {Type: "PRIVATE KEY", Bytes: secret}} {
		if err := os.WriteFile(path, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

func TestProblemsAreNamedWithTheirFix(t *testing.T) {
	now := time.Now()
	year := 365 * 24 * time.Hour
	write := func(o *Options, name string, mode os.FileMode) {
		path := filepath.Join(o.Config.DataDir, name)
		if err := errors.Join(os.WriteFile(path, nil, 0o600), os.Chmod(path, mode)); err != nil {
			t.Fatal(err)
		}
	}
	hold := func(t *testing.T, o *Options) {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { l.Close() })
		o.Config.Listen = l.Addr().String()
	}
	runs := func(s Server) func(context.Context) (*Server, error) {
		return func(context.Context) (*Server, error) { return &s, nil }
	}
	for name, test := range map[string]struct {
		change func(t *testing.T, o *Options)
		check  string
		level  Level
		what   []string
		mend   string
	}{
		"a field": {func(t *testing.T, o *Options) {
			o.Fault = &fanfare.Error{Code: fanfare.Invalid, Message: "the configuration is invalid", Details: []*fanfare.Error{{Pointer: "/lease", Line: 3, Message: "1s is out of range", Hint: "use 10s to 1h"}}}
		}, "configuration", Wrong, []string{"/lease", "line 3", "1s is out of range"}, "use 10s to 1h"},
		"a clock that is years behind": {func(t *testing.T, o *Options) { o.Now = func() time.Time { return time.Unix(0, 0) } }, "clock", Wrong, []string{"1970"}, "chrony"},
		"a folder that cannot be":      {func(t *testing.T, o *Options) { o.Config.DataDir = "/dev/null/data" }, "data", Wrong, []string{"/dev/null"}, "that the user that runs the server can access"},
		"a file for a folder": {func(t *testing.T, o *Options) {
			write(o, "file", 0o600)
			o.Config.DataDir = filepath.Join(o.Config.DataDir, "file")
		}, "data", Wrong, []string{"not a folder"}, "data_dir"},
		"a folder that others may read": {func(t *testing.T, o *Options) {
			if err := os.Chmod(o.Config.DataDir, 0o755); err != nil {
				t.Fatal(err)
			}
		}, "data", Warning, []string{"0755"}, "chmod 700"},
		"a password that others may read, before the first start": {func(t *testing.T, o *Options) {
			write(o, "password", 0o644)
			o.Config.DBPasswordFile, o.Config.DataDir = filepath.Join(o.Config.DataDir, "password"), filepath.Join(o.Config.DataDir, "later")
		}, "keys", Wrong, []string{"password", "0644"}, "chmod 600"},
		"a key that others may read": {func(t *testing.T, o *Options) { write(o, "admin.key", 0o640) }, "keys", Wrong, []string{"admin.key", "0640"}, "chmod 600"},
		"a full disk":                {func(t *testing.T, o *Options) { o.Config.DiskFloor = config.DiskFloor{SizeBytes: 1 << 60} }, "free disk", Wrong, []string{"less than the floor"}, "disk_floor"},
		"a port of others":           {hold, "listen", Wrong, []string{"in use", "nobody is there"}, "another port"},
		"a port of nobody's":         {func(t *testing.T, o *Options) { o.Config.Listen = "192.0.2.1:8085" }, "listen", Wrong, []string{"192.0.2.1"}, "address of this machine"},
		"a server that is older": {func(t *testing.T, o *Options) {
			hold(t, o)
			o.Server = runs(Server{Version: "0.9", Ready: true})
		}, "version", Warning, []string{"0.9", "1.0"}, "restart"},
		"a server that starts": {func(t *testing.T, o *Options) {
			hold(t, o)
			lockAs(t, filepath.Join(o.Config.DataDir, "lock"))
			o.Server = func(context.Context) (*Server, error) {
				return nil, &fanfare.Error{Code: fanfare.Unavailable, Message: "the server is starting and waits for the database db", Hint: "try again in a moment"}
			}
		}, "server", Warning, []string{"it is not ready: the server is starting and waits for the database db"}, "try again"},
		"a node without the admin key": {func(t *testing.T, o *Options) {
			hold(t, o)
			lockAs(t, filepath.Join(o.Config.DataDir, "lock"))
			o.Server = func(context.Context) (*Server, error) {
				return nil, &fanfare.Error{Code: fanfare.Unauthenticated, Message: "no API key found in admin.key", Hint: "copy the file"}
			}
		}, "server", Warning, []string{"its state could not be checked: no API key found"}, "copy the file"},
		"a server of another folder": {func(t *testing.T, o *Options) {
			hold(t, o)
			o.Server = runs(Server{Version: "1.0", Ready: true})
		}, "listen", Warning, []string{"a data directory other than"}, "data_dir"},
		"a server without its database": {func(t *testing.T, o *Options) {
			hold(t, o)
			o.Server = runs(Server{Version: "1.0", Reason: "the database cannot be reached (events are taken meanwhile)"})
		}, "server", Warning, []string{"it is not ready: the database cannot be reached"}, "database problems above"},
		"parked work": {func(t *testing.T, o *Options) {
			hold(t, o)
			o.Server = runs(Server{Version: "1.0", Ready: true, Parked: 3})
		}, "server", Warning, []string{"3 work items"}, "parked list"},
		"no public URL":             {func(t *testing.T, o *Options) { o.Config.PublicURL = "" }, "public_url", Warning, []string{"not set"}, "set public_url"},
		"a public URL that is bare": {func(t *testing.T, o *Options) { o.Config.PublicURL = "http://news.example.org" }, "public_url", Warning, []string{"RFC 8058"}, "https"},
		"names that nobody knows": {func(t *testing.T, o *Options) {
			o.LookupHost = func(context.Context, string) ([]string, error) { return nil, errors.New("no such host") }
		}, "channel news/mail", Wrong, []string{"mx.example.org", "no such host"}, "resolv.conf"},
		"a certificate that ended": {func(t *testing.T, o *Options) {
			certificate(t, o, "news.example.org", now.Add(-year), now.Add(-time.Hour))
		}, "certificate", Wrong, []string{"expired on"}, "renew"},
		"a certificate that ends soon": {func(t *testing.T, o *Options) {
			certificate(t, o, "news.example.org", now.Add(-year), now.Add(24*time.Hour))
		}, "certificate", Warning, []string{"expires on"}, "renew"},
		"a certificate to come": {func(t *testing.T, o *Options) {
			certificate(t, o, "news.example.org", now.Add(time.Hour), now.Add(year))
		}, "certificate", Wrong, []string{"only from"}, "clock"},
		"a certificate of another": {func(t *testing.T, o *Options) {
			certificate(t, o, "other.example.org", now.Add(-time.Hour), now.Add(year))
		}, "certificate", Warning, []string{"other.example.org"}, "news.example.org"},
		"a good certificate": {func(t *testing.T, o *Options) {
			certificate(t, o, "news.example.org", now.Add(-time.Hour), now.Add(year))
		}, "certificate", OK, []string{"news.example.org"}, ""},
		"a relay that is down": {func(t *testing.T, o *Options) {
			o.Probe = func(context.Context, *catalog.Channel, string) (Session, error) {
				return Session{}, errors.New("dial tcp: connection refused")
			}
		}, "channel news/mail", Wrong, []string{"mx.example.org:25", "refused"}, "start the mail server"},
		"a relay that cannot encrypt": {func(t *testing.T, o *Options) {
			o.Probe = func(context.Context, *catalog.Channel, string) (Session, error) { return Session{Banner: "x"}, nil }
		}, "channel news/mail", Warning, []string{"not encrypted"}, "STARTTLS"},
		"a relay that nobody should trust": {func(t *testing.T, o *Options) {
			o.Probe = func(context.Context, *catalog.Channel, string) (Session, error) {
				return Session{TLS: "TLS 1.2", Untrusted: errors.New("unknown authority")}, nil
			}
		}, "channel news/mail", Warning, []string{"unknown authority"}, "certificate"},
		"a password that is elsewhere": {func(t *testing.T, o *Options) {
			o.Channels = func(context.Context) ([]*catalog.Channel, error) {
				return []*catalog.Channel{{Service: "news", Name: "mail", ChannelSettings: catalog.ChannelSettings{Driver: "smtp", Relay: "mx.example.org:25", Username: "u", PasswordEnv: "FANFARE_TEST_NOT_SET"}}}, nil
			}
		}, "channel news/mail", Warning, []string{"FANFARE_TEST_NOT_SET"}, "set the variable in the environment"},
		"a folder of mails that is not ours": {func(t *testing.T, o *Options) {
			o.Channels = func(context.Context) ([]*catalog.Channel, error) {
				return []*catalog.Channel{{Service: "news", Name: "mail", ChannelSettings: catalog.ChannelSettings{Driver: "file", Path: "/dev/null/mails"}}}, nil
			}
		}, "channel news/mail", Wrong, []string{"/dev/null"}, "can access"},
		"a store that cannot be read": {func(t *testing.T, o *Options) {
			o.Channels = func(context.Context) ([]*catalog.Channel, error) { return nil, errors.New("permission denied") }
		}, "channels", Warning, []string{"permission denied"}, "as the user"},
		"more requests than files": {func(t *testing.T, o *Options) { o.Config.MaxRequests = 1 << 40 }, "open files", Warning, []string{"may be needed"}, "LimitNOFILE"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := healthy(t)
			test.change(t, &o)
			r := Look(t.Context(), o)
			list := r.of(test.check)
			if len(list) == 0 {
				t.Fatalf("nothing is said of it: %+v", r.Findings)
			}
			f := list[0]
			if f.Level != test.level || !strings.Contains(f.Mend, test.mend) || (f.Level != OK) != (f.Mend != "") {
				t.Errorf("%+v", f)
			}
			for _, want := range test.what {
				if !strings.Contains(f.What, want) {
					t.Errorf("%q is not in %q", want, f.What)
				}
			}
		})
	}
}

func TestInvalidReplyRulesAreReported(t *testing.T) {
	for name, c := range map[string]struct {
		err   error
		level Level
		mend  string
	}{
		"good":    {nil, OK, ""},
		"missing": {errors.New("no such file"), Wrong, "set reply_rules to a file that the user that runs the server can read"},
		"wrong":   {&fanfare.Error{Code: fanfare.Invalid, Message: "no class", Hint: "use full"}, Wrong, "use full"},
	} {
		o := healthy(t)
		o.Config.ReplyRules = "/etc/replies.yaml"
		o.Rules = func(string) (int, error) { return 3, c.err }
		list := Look(t.Context(), o).of("replies")
		if len(list) != 1 || list[0].Level != c.level || list[0].Mend != c.mend {
			t.Errorf("%s: %+v", name, list)
		}
	}
	if list := Look(t.Context(), healthy(t)).of("replies"); len(list) != 0 {
		t.Errorf("without a file: %+v", list)
	}
}

// lockAs holds the lock of a data directory as a server does, until the test ends.
func lockAs(t *testing.T, path string) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		t.Fatal(err)
	}
}

// The copies of the bus of a cluster are reported, and one copy is not highly available.
func TestDoctorReportsTheCopiesOfTheBus(t *testing.T) {
	for name, c := range map[string]struct {
		copies     *Copies
		durability string
		bus, sync  Finding
	}{
		"complete":       {&Copies{Embedded: true, Replicas: 3, Current: 3, Synced: true}, "fsync", Finding{Level: OK, What: "3 of 3 copies"}, Finding{Level: OK, What: "sync before"}},
		"one missing":    {&Copies{Embedded: true, Replicas: 3, Current: 2, Synced: true}, "fsync", Finding{Level: Warning, What: "2 of 3 copies"}, Finding{Level: OK, What: "sync before"}},
		"one copy":       {&Copies{Replicas: 1, Current: 1}, "fsync", Finding{Level: Warning, What: "not highly available"}, Finding{Level: OK, What: "not checked"}},
		"relaxed":        {&Copies{Embedded: true, Replicas: 3, Current: 3}, "relaxed", Finding{Level: OK, What: "3 of 3"}, Finding{Level: Warning, What: "relaxed"}},
		"leader relaxed": {&Copies{Embedded: true, Replicas: 3, Current: 3}, "fsync", Finding{Level: OK, What: "3 of 3"}, Finding{Level: Warning, What: "unlike this node"}},
		"no answer":      {nil, "fsync", Finding{Level: Warning, What: "do not respond"}, Finding{}},
	} {
		t.Run(name, func(t *testing.T) {
			o, r := healthy(t), &Report{}
			o.Config.Node, o.Config.Durability = "one", c.durability
			o.copies(r, c.copies)
			for check, want := range map[string]Finding{"bus": c.bus, "bus sync": c.sync} {
				got := r.of(check)
				if want.What == "" {
					if len(got) > 0 {
						t.Errorf("%s: %+v", check, got)
					}
				} else if len(got) != 1 || got[0].Level != want.Level || !strings.Contains(got[0].What, want.What) {
					t.Errorf("%s: %+v, want %+v", check, got, want)
				}
			}
		})
	}
}
