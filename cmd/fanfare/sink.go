package main

import (
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"sync"
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
	var folder string
	command := &cobra.Command{
		Use: "sink", Short: "Run a capture server for mail and webhooks",
		Long: `Run a mail server that accepts all messages, delivers none, and counts them by event
and recipient. Use it to try Fanfare, for benchmarks and for tests. With --http, it
accepts webhooks instead of mail; to accept both, also pass --smtp. The recipient of a
webhook is its host and path. The sink can refuse, delay and drop a given share of
messages, limit the rate, and behave differently for each host (--host). While it runs,
it returns a JSON summary in response to GET requests; when it stops, it prints the
summary. With --show, it prints the first messages in full. With --folder, it keeps each
message as a file, and a server with this folder in the setting capture_folders shows the
messages in its console.`,
		Example: `  fanfare sink --smtp 127.0.0.1:2525
  fanfare sink --smtp 127.0.0.1:0 --temp-fail 0.02 --perm-fail 0.01 --drop-in-data 0.001
  fanfare sink --show 10
  fanfare sink --folder ./received
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
			if folder != "" {
				kept, refused := sink.OpenFolder(folder)
				if refused != nil {
					return refused
				}
				defer func() {
					if lost := kept.Close(); err == nil {
						err = lost
					}
				}()
				cfg.OnMessage = c.keepIn(kept)
			}
			return c.runSink(command, sink.New(cfg), at)
		},
	}
	f := command.Flags()
	f.StringVar(&at.smtp, "smtp", "127.0.0.1:2525", "address for mail (port 0: any free port)")
	f.StringVar(&at.http, "http", "", "address for webhooks (the host loopback is all of 127.0.0.0/8)")
	f.BoolVar(&startTLS, "tls", false, "offer STARTTLS and HTTPS with a new self-signed certificate")
	f.IntVar(&show, "show", 0, "number of messages to print in full")
	f.StringVar(&folder, "folder", "", "directory in which to keep the first 100000 messages as files")
	f.StringVar(&record, "record", "", "file to which to append a line for each accepted recipient: time, event, recipient, Message-ID")
	f.StringVar(&cfg.RecordOnly, "record-only", "", "record only recipients that match this pattern, for example 'urgent*'")
	f.BoolVar(&cfg.RecordSync, "record-sync", false, "write the line before replying to the message")
	f.StringArrayVar(&cfg.Secrets, "secret", nil, "verify webhook signatures with this whsec_ secret or whpk_ public key (repeatable)")
	f.IntVar(&cfg.Above, "above", 0, "maximum messages per second, above which the sink replies with 452 or 429 (0: unlimited)")
	f.StringArrayVar(&behaviours, "host", nil, "behavior of hosts that match a pattern: refuse, hang, 2s or 5/s (the first match applies)")
	in := &cfg.Inject
	f.Uint64Var(&in.Seed, "seed", 1, "seed for random choices")
	f.Float64Var(&in.TempFail, "temp-fail", 0, "share of recipients to refuse with 4xx at the first attempt")
	f.BoolVar(&in.TempFailAlways, "temp-fail-always", false, "refuse these recipients at every attempt")
	f.Float64Var(&in.PermFail, "perm-fail", 0, "share of recipients to refuse with 5xx")
	f.StringVar(&in.At, "fail-at", sink.AtRcpt, "command to refuse at: rcpt, data or body")
	f.DurationVar(&in.Delay, "delay", 0, "delay before the reply to a message or webhook")
	f.Float64Var(&in.DelayShare, "delay-share", 1, "share of messages to delay")
	f.Float64Var(&in.DropBeforeData, "drop-before-data", 0, "share of messages for which to close the connection instead of replying to DATA")
	f.Float64Var(&in.DropInData, "drop-in-data", 0, "share of messages for which to close the connection when the body begins")
	f.Float64Var(&in.DropBeforeReply, "drop-before-reply", 0, "share of messages for which to close the connection instead of sending the final reply")
	return command
}

// keepIn returns the function that keeps each message. It reports the first error.
func (c *cli) keepIn(folder *sink.Folder) func(from string, to []string, body []byte) {
	var once sync.Once
	return func(from string, to []string, body []byte) {
		if err := folder.Keep(from, to, body); err != nil {
			once.Do(func() { fmt.Fprintln(c.err, "a message was accepted, but not kept:", err) })
		}
	}
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
		return &fanfare.Error{Code: fanfare.Conflict, Message: err.Error(), Hint: "another program, perhaps another sink, is using the address; choose other addresses with --smtp and --http"}
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
			bar.Set(n, n)
			show()
		}
	}
	err := s.Close()
	bar.End()
	show()
	if unprinted := c.printJSON(s.Stats()); err == nil {
		err = unprinted
	}
	return err
}
