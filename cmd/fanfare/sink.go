package main

import (
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/sink"
)

func (c *cli) sinkCommand() *cobra.Command {
	var cfg sink.Config
	var at sinkAddresses
	var record string
	var behaviours []string
	var startTLS bool
	var show int
	command := &cobra.Command{
		Use: "sink", Short: "Run a mail server and webhook receiver that takes everything and counts",
		Long: `Run a mail server that takes everything, delivers nothing, and counts by event
and recipient: for a first try, for benchmarks and for tests. With --http it takes
requests, and mail too where --smtp is given; the recipient of a request is its host
and path. It can refuse, wait and hang up in given shares, take so many messages in a
second, and behave for each host as --host says. When it is stopped it prints a summary
as JSON, which a GET answers while it runs. With --show the first messages are
printed in full as they come.`,
		Example: `  fanfare sink --smtp 127.0.0.1:2525
  fanfare sink --smtp 127.0.0.1:0 --temp-fail 0.02 --perm-fail 0.01 --drop-in-data 0.001
  fanfare sink --show 10
  fanfare sink --smtp 127.0.0.1:2525 --delay 250ms --above 360
  fanfare sink --http loopback:8080 --host '127.0.1.*=refuse' --host '127.0.2.*=2s' --host '127.0.3.*=5/s'`,
		Args: cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) (err error) {
			cfg.KeepFirst = show
			if at.http != "" && !command.Flags().Changed("smtp") {
				at.smtp = ""
			}
			for _, text := range behaviours {
				rule, err := sink.ParseHostRule(text)
				if err != nil {
					return err
				}
				cfg.Hosts = append(cfg.Hosts, rule)
			}
			if err := cfg.Validate(); err != nil {
				return err
			}
			if startTLS {
				if cfg.TLS, _, err = sink.SelfSigned("localhost"); err != nil {
					return err
				}
			}
			if record != "" {
				lines, refused := os.OpenFile(record, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
				if refused != nil {
					return refused
				}
				defer func() {
					if lost := lines.Close(); err == nil {
						err = lost
					}
				}()
				cfg.Record = lines
			}
			return c.runSink(command, sink.New(cfg), at)
		},
	}
	f := command.Flags()
	f.StringVar(&at.smtp, "smtp", "127.0.0.1:2525", "address to take mail at; port 0 takes a free one")
	f.StringVar(&at.http, "http", "", "address to take requests at; the host loopback is all of 127.0.0.0/8")
	f.BoolVar(&startTLS, "tls", false, "offer STARTTLS and speak HTTPS, with a certificate made now")
	f.IntVar(&show, "show", 0, "print so many messages in full, the first ones, as they come")
	f.StringVar(&record, "record", "", "append a line per accepted recipient to this file: time, event, recipient, Message-ID")
	f.StringVar(&cfg.RecordOnly, "record-only", "", "record only recipients that fit this pattern, such as 'urgent*'")
	f.BoolVar(&cfg.RecordSync, "record-sync", false, "write that line before the message is answered")
	f.StringArrayVar(&cfg.Secrets, "secret", nil, "verify the signatures of requests with this whsec_ secret or whpk_ public key (one of several)")
	f.IntVar(&cfg.Above, "above", 0, "refuse messages above so many in any one second, with 452 or 429; 0 takes all")
	f.StringArrayVar(&behaviours, "host", nil, "how hosts that fit a pattern behave: refuse, hang, 2s, 5/s; the first that fits counts")
	in := &cfg.Inject
	f.Uint64Var(&in.Seed, "seed", 1, "equal seeds refuse the same recipients")
	f.Float64Var(&in.TempFail, "temp-fail", 0, "share of recipients that are refused 4xx at the first attempt")
	f.BoolVar(&in.TempFailAlways, "temp-fail-always", false, "refuse them at every attempt")
	f.Float64Var(&in.PermFail, "perm-fail", 0, "share of recipients that are refused 5xx")
	f.StringVar(&in.At, "fail-at", sink.AtRcpt, "where refusals strike: rcpt, data or body")
	f.DurationVar(&in.Delay, "delay", 0, "wait before the answer to a message or request")
	f.Float64Var(&in.DelayShare, "delay-share", 1, "share of the messages that wait")
	f.Float64Var(&in.DropBeforeData, "drop-before-data", 0, "share of messages: hang up in place of the answer to DATA")
	f.Float64Var(&in.DropInData, "drop-in-data", 0, "share of messages: hang up when the body begins")
	f.Float64Var(&in.DropBeforeReply, "drop-before-reply", 0, "share of messages: hang up in place of the last answer")
	return command
}

// sinkAddresses are where a sink listens, "" for not at all.
type sinkAddresses struct{ smtp, http string }

// listen binds one address and says so.
func (c *cli) listen(address string, bind func(string) (net.Addr, error), what string) error {
	if address == "" {
		return nil
	}
	at, err := bind(address)
	if errors.Is(err, syscall.EADDRINUSE) {
		return &fanfare.Error{Code: fanfare.Conflict, Message: err.Error(), Hint: "another program listens there, perhaps a sink that was started before; --smtp and --http name other addresses"}
	}
	if err != nil {
		return err
	}
	fmt.Fprintf(c.err, "sink takes %s%s until Ctrl-C\n", what, at)
	return nil
}

// runSink serves until the command is interrupted, then prints the summary.
func (c *cli) runSink(command *cobra.Command, s *sink.Server, at sinkAddresses) error {
	if err := c.listen(at.smtp, s.Listen, "mail at "); err != nil {
		return err
	}
	if err := c.listen(at.http, s.ListenHTTP, "requests at http://"); err != nil {
		return err
	}
	served := make(chan error, 1)
	go func() { served <- s.Serve() }()
	printed := 0
	show := func() {
		for messages := s.Messages(); printed < len(messages); printed++ {
			m := &messages[printed]
			fmt.Fprintf(c.err, "---- from %s to %s\n%s\n", m.From, strings.Join(m.To, ", "), m.Body)
		}
	}
	bar := c.newBar("taking", "messages", 0)
	ticker := time.NewTicker(200 * time.Millisecond)
	defer ticker.Stop()
	for waiting := true; waiting; {
		select {
		case <-command.Context().Done():
			waiting = false
		case err := <-served:
			if err != nil {
				return err
			}
			waiting = false
		case <-ticker.C:
			n := s.Stats().Messages
			bar.set(n, n)
			show()
		}
	}
	err := s.Close()
	bar.end()
	show()
	if unprinted := c.printJSON(s.Stats()); err == nil {
		err = unprinted
	}
	return err
}
